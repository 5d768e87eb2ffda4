#!/usr/bin/env bash
#
# Generates everything that depends on the types under pkg/apis: deepcopy and register
# functions, OpenAPI definitions, apply configurations, clientset, listers, informers, the
# CustomResourceDefinition and its JSON schema.
#
# It needs only Go and git, and works from any directory. After an error, it exits with a non-zero
# status and leaves the tree unchanged.

set -o errexit -o nounset -o pipefail
unset CDPATH

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=hack/codegen.sh
source "${root}/hack/codegen.sh"

codegen::with_generated_copy "${root}" codegen::install "${root}"
