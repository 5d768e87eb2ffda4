#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Compares the exported API of the library with that of the last release, which CHANGELOG.md names.
# It prints what has changed, and fails if a change is incompatible and the section Unreleased lacks the
# heading Incompatible.
#
#   hack/api.sh [COMMIT]
#
# COMMIT is compared with in place of the last release. For hack/release.sh, the heading may then be in the
# section of the release that is made, the first.

set -o errexit -o nounset -o pipefail
unset CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off

release="${1:-$(sed -n -E 's/^## v[^ ]+ \(([0-9a-f]{7,40})\).*$/\1/p' CHANGELOG.md | head -n 1)}"
if [[ -z "${release}" ]]; then
  echo "CHANGELOG.md names no release yet: there is nothing to compare with"
  exit 0
fi
if ! git cat-file -e "${release}^{commit}" 2>/dev/null; then
  echo "This clone lacks the commit of the last release, ${release}: run git fetch --unshallow" >&2
  # A clone of the newest commit alone can't compare.
  [[ "$(git rev-parse --is-shallow-repository)" == true ]]
  exit
fi

folder=$(mktemp -d)
trap 'git worktree remove --force "${folder}/tree" 2>/dev/null || true; rm -rf "${folder}"' EXIT
git worktree add --quiet --detach "${folder}/tree" "${release}"

status=0
bin/apidiff "${folder}/tree" . ./pkg/reconcile/... ./pkg/process/... || status=$?
if [[ "${status}" -ne 0 && "${status}" -ne 3 ]]; then
  exit "${status}"
fi

unreleased=$(awk -v first="$#" '/^## /{inside = /^## Unreleased/ || first && !sections++} inside' CHANGELOG.md)
if [[ "${status}" -eq 3 && "${unreleased}" != *"### Incompatible"* ]]; then
  echo "The library has incompatible changes since ${release}: undo them, or describe them in CHANGELOG.md, section Unreleased, below ### Incompatible" >&2
  exit 1
fi
