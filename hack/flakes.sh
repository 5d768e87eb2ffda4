#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Repeats the unit tests and the end-to-end tests while two processes use as much CPU time as they
# can get. It stops at the first failure, and prints the output of that run.
#
#   hack/flakes.sh [UNIT [E2E]]
#
# UNIT and E2E are the numbers of runs, by default 20 and 10.

set -o errexit -o nounset -o pipefail
unset CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp)
hogs=()
# shellcheck disable=SC2317 # the trap calls it
finish() {
  kill "${hogs[@]}" 2>/dev/null || true
  rm -f "${log}"
}
trap finish EXIT
for _ in 1 2; do
  while :; do :; done &
  hogs+=("$!")
done

# repeat TIMES CHECK [COMMAND] runs a check several times.
repeat() {
  local times=$1 run
  shift
  for ((run = 1; run <= times; run++)); do
    SECONDS=0
    if ! hack/check.sh "$@" >"${log}" 2>&1; then
      cat "${log}"
      echo "flakes: $1 failed in run ${run} of ${times}"
      return 1
    fi
    echo "flakes: $1 passed in run ${run} of ${times}, in ${SECONDS} s"
  done
}

export GO_TEST_FLAGS="${GO_TEST_FLAGS:-} -count=1"
repeat "${1:-20}" unit
repeat "${2:-10}" e2e hack/e2e.sh
