#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Copies into the Helm chart the manifests that it shares with the installation by kustomize: artifacts/chart/files. The
# chart's templates take from them what changes with the API and the controller: CustomResourceDefinitions, permissions,
# admission policies, alerts and the dashboard. The rest of the templates is written by hand: make test-chart compares
# what the two install.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../artifacts"
rm -rf chart/files
mkdir -p chart/files/crds
cp crd/*_*.yaml chart/files/crds
cp deploy/permissions/{controller,users,admission-policy*}.yaml monitoring/{rules.yaml,dashboard.json} chart/files
