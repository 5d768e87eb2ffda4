#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Copies into the Helm chart the manifests that it shares with the installation by kustomize: artifacts/chart/files. The
# chart's templates take from them what changes with the API and the controller: CustomResourceDefinitions, permissions,
# admission policies, alerts and the dashboard. The rest of the templates is written by hand: make test-chart compares
# what the two install. Chart.yaml describes the CustomResourceDefinitions, with an example of each, to Artifact Hub.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../artifacts"
rm -rf chart/files
mkdir -p chart/files/crds
cp crd/*_*.yaml chart/files/crds
cp deploy/permissions/{controller,users,admission-policy*}.yaml monitoring/{rules.yaml,dashboard.json} chart/files

# describe CRD... prints the entry of each definition: of the stored version, and the first sentence of its description.
describe() {
  awk '
    /^  name: / { name = $2 }
    /^    kind: / { kind = $2 }
    /^  (-| ) name: / { version = $NF }
    /^        description: / { text = ""; inside = 1; sub(/^ *description:( \|-)?/, "") }
    inside {
      gsub(/^ +| +$/, "")
      text = text (text == "" ? "" : " ") $0
      inside = !sub(/\.( .*)?$/, ".", text)
    }
    /^    storage: true/ {
      printf "    - kind: %s\n      version: %s\n      name: %s\n      displayName: %s\n", kind, version, name, kind
      printf "      description: >-\n        %s\n", text
    }' "$@"
}

{
  sed '/^  artifacthub.io\/crds: /,$d' chart/Chart.yaml
  echo "  artifacthub.io/crds: |"
  describe crd/*_*.yaml
  echo "  artifacthub.io/crdsExamples: |"
  awk '{ print (FNR == 1 ? "    - " : "      ") $0 }' examples/*.yaml
} >chart/.Chart.yaml
mv chart/.Chart.yaml chart/Chart.yaml
