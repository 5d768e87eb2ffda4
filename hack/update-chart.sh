#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Copies the manifests that the Helm chart shares with kustomize into artifacts/chart/files: CustomResourceDefinitions,
# permissions, admission policies, alerts and the dashboard, which change with the API and the controller. The chart's
# templates include them. The other templates are written by hand, and make test-chart compares what the two install.
# Chart.yaml describes the CustomResourceDefinitions, with an example of each, to Artifact Hub.

set -o errexit -o nounset -o pipefail
unset CDPATH

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
  awk 'FNR == 1 { dash = "- " } !/^#/ { printf "    %-2s%s\n", dash, $0; dash = "" }' examples/*.yaml
} >chart/.Chart.yaml
mv chart/.Chart.yaml chart/Chart.yaml
