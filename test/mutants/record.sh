#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Runs test suites on each mutant, in a git worktree of HEAD, up to the first failure, and appends
# to _output/mutants.csv which suite notices which mutant, after how many seconds, and by which
# test. What the file has already is not run again, so that a recording of many hours can be
# interrupted.
#
#   test/mutants/record.sh PATTERN SUITE...
#
# PATTERN is a regular expression for the mutants, and SUITE a target of make.

set -o errexit -o nounset -o pipefail
unset CDPATH
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# A suite that hangs has noticed the mutant.
readonly limit=15m
readonly failure='^ *--- FAIL: |^FAIL[[:space:]]|^panic: |^==> .*: FAILED'
readonly results="${PWD}/_output/mutants.csv" pattern="$1"
shift
mkdir -p _output
touch "${results}"
scratch=$(mktemp -d)
readonly scratch tree="${scratch}/tree" log="${scratch}/log"
running=""
# end ends what runs, with its children, which are in its process group.
end() {
  [[ -z "${running}" ]] || kill -TERM -- "-${running}" 2>/dev/null || true
  wait || true
  running=""
}
trap 'end; git worktree remove --force "${tree}"; rm -rf "${scratch}"' EXIT
trap 'exit 130' INT TERM

go build -o "${scratch}/mutate" ./test/mutants/mutate
git worktree add --quiet --detach "${tree}"
# This test would notice mutants, because most can't be applied twice.
echo "package mutants_test" >"${tree}/test/mutants/mutants_test.go"

# noticed COMMAND... runs a command in the tree until it prints that something failed, and prints
# what. It fails if nothing did.
noticed() {
  local status=0
  # timeout makes a process group.
  (cd "${tree}" && exec timeout --kill-after=20s "${limit}" "$@") >"${log}" 2>&1 </dev/null &
  running=$!
  while kill -0 "${running}" 2>/dev/null && ! grep -qE "${failure}" "${log}"; do
    sleep 1
  done
  if grep -q '\[build failed\]' "${log}"; then
    cat "${log}" >&2
    exit 1
  fi
  if grep -m 1 -E "${failure}" "${log}" >"${scratch}/by"; then
    end
    return
  fi
  wait "${running}" || status=$?
  running=""
  echo "exit status ${status}" >"${scratch}/by" # 124 if it hung
  [[ "${status}" -ne 0 ]]
}

# quote TEXT prints a field of a CSV file.
quote() { printf '"%s"' "${1//\"/\"\"}"; }

"${scratch}/mutate" "${tree}" list "${pattern}" >"${scratch}/names"
while IFS= read -r name <&3; do
  for suite in "$@"; do
    key="$(quote "${name}"),${suite},"
    if grep -qF "${key}" "${results}"; then
      continue
    fi
    file=$("${scratch}/mutate" "${tree}" make "${name}")
    SECONDS=0
    found=true
    # The unit tests of the mutant's own package notice most mutants, and take seconds.
    if ! { [[ "${suite}" == test-unit && "${file}" == *.go ]] &&
      noticed go test -vet=off -count=1 -failfast -timeout=3m "./$(dirname "${file}")"; } &&
      ! noticed make "${suite}" FAULTS_SEED=1; then
      found=false
      : >"${scratch}/by"
    fi
    by=$(<"${scratch}/by")
    echo "${name}: ${suite}: ${found} after ${SECONDS} s ${by}"
    echo "${key}${found},${SECONDS}s,$(quote "${by}")" >>"${results}"
    git -C "${tree}" checkout --quiet -- "${file}"
  done
done 3<"${scratch}/names"
