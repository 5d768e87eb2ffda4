#!/usr/bin/env bash
#
# Makes everything that is generated from the types under pkg/apis: deepcopy
# and register functions, OpenAPI definitions, apply configurations, clientset,
# listers, informers and the CustomResourceDefinition.
#
# Needs Go and nothing else; may be called from any folder. On an error it ends
# non-zero and the tree stays as it was.

set -o errexit -o nounset -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=hack/codegen.sh
source "${root}/hack/codegen.sh"

codegen::with_generated_copy "${root}" codegen::install "${root}"
echo "The generated code is up to date with pkg/apis"
