#!/usr/bin/env bash
#
# Checks that the generated code is up to date with the types under pkg/apis. If it is not, the
# script prints the difference and exits with 1. It generates into a copy, and never changes the
# tree.

set -o errexit -o nounset -o pipefail
unset CDPATH

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=hack/codegen.sh
source "${root}/hack/codegen.sh"

codegen::with_generated_copy "${root}" codegen::compare "${root}"
