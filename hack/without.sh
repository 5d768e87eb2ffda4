#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Tests rows of the table "What can be deleted" in CONTRIBUTING.md. In a copy of the tree, it
# deletes the paths of each row, and then runs go vet and the unit tests in each module that can
# be tested in seconds.
#
#   hack/without.sh NAME...     names in the first column, such as "e2e" "new project"

set -o errexit -o nounset -o pipefail
unset CDPATH

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "${root}"
export GOWORK=off

# row NAME prints the paths of a row, one per line.
row() {
  awk -F ' *[|] *' -v name="$1" '
    /^## / { inside = $0 == "## What can be deleted" }
    inside && $2 == name {
      count = split($3, paths, /, */)
      for (i = 1; i <= count; i++) { gsub(/`/, "", paths[i]); print paths[i] }
      found = 1
    }
    END { exit !found }' CONTRIBUTING.md
}

if [[ $# -eq 0 ]]; then
  echo "usage: $0 NAME..., with names from the table \"What can be deleted\" in CONTRIBUTING.md" >&2
  exit 2
fi

copy=$(mktemp -d)
trap 'rm -rf "${copy}"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 tar -cf - | tar -xf - -C "${copy}"

for name in "$@"; do
  paths=$(row "${name}") || {
    echo "CONTRIBUTING.md has no row \"${name}\"" >&2
    exit 2
  }
  while IFS= read -r path; do
    # The path may be a pattern.
    (cd "${copy}" && compgen -G "${path}" >/dev/null) || {
      echo "${path} does not exist" >&2
      exit 1
    }
    (cd "${copy}" && compgen -G "${path}" | xargs rm -r)
  done <<<"${paths}"
  echo "deleted: ${name}"
done

cd "${copy}"
git init --quiet && git add --all # newproject copies what git knows
make -n test >/dev/null
for module in . hack/* tools/*; do
  if [[ -f "${module}/go.mod" ]]; then
    echo "--- ${module}"
    (cd "${module}" && go vet ./...)
    # Tests that need a cluster or minutes are in hack/codegen and directories called test. The tests of the
    # documents would fail, because the documents still mention the deleted paths. A cached result
    # may come from another copy: see go_test in hack/check.sh.
    (cd "${module}" && go list ./... | grep -vE '/test(/|$)|/hack/codegen$|/docs/claims$' | xargs go test -vet=off -count=1)
  fi
done
