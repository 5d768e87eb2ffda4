#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Runs the fuzz tests: hack/check.sh fuzz hack/fuzz.sh. Except for test/artifacts/fuzz, the unit tests have
# already run the seeds and the saved failures.

set -o errexit -o nounset -o pipefail
unset CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/.."
read -r -a go_test_flags <<<"${GO_TEST_FLAGS:-}"

# fuzz_package DIRECTORY PACKAGES runs the fuzz targets in a directory, one after the other.
# -d=libfuzzer instruments only PACKAGES for coverage; go test -fuzz would instrument, and
# therefore recompile, all imported packages.
fuzz_package() (
  cd "$1"
  local scratch corpus targets target failed=0
  scratch=$(mktemp -d)
  trap 'rm -rf "${scratch}"' EXIT
  corpus=$(go env GOCACHE)/fuzz/$(go list .) # where go test -fuzz keeps interesting inputs
  go test -vet=off -c -gcflags="$2=-d=libfuzzer" -o "${scratch}/fuzz.test" . || return
  targets=$("${scratch}/fuzz.test" -test.list '^Fuzz') || return
  while IFS= read -r target; do
    "${scratch}/fuzz.test" -test.v -test.run='^$' -test.fuzz="^${target}\$" -test.fuzztime="${FUZZ_TIME:-5000x}" \
      -test.fuzzminimizetime=100x -test.fuzzcachedir="${corpus}" </dev/null || {
      echo "to repeat it: (cd $1 && go test -count=1 -run='${target}/NAME' .), where NAME follows ${target}/ in the output above"
      failed=1
    }
  done <<<"${targets}"
  return "${failed}"
)

failed=0
fuzz_package . example.com/sample-controller/... || failed=1
fuzz_package internal/kinds example.com/sample-controller/... || failed=1
(cd test/artifacts/fuzz && go test -vet=off -count=1 ${go_test_flags[@]+"${go_test_flags[@]}"} .) || failed=1
fuzz_package test/artifacts/fuzz k8s.io/apiextensions-apiserver/... || failed=1
exit "${failed}"
