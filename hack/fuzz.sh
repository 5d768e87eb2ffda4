#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Fuzzing: hack/check.sh fuzz hack/fuzz.sh. The unit tests have already run the seeds and the
# saved failures, except those of test/fuzz.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
read -r -a go_test_flags <<<"${GO_TEST_FLAGS:-}"

# fuzz_package FOLDER PACKAGES runs the fuzz targets in a folder, one after the other.
# -d=libfuzzer limits the coverage instrumentation to PACKAGES; go test -fuzz would
# instrument, and so compile again, all imported packages.
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
      echo "to run it again: (cd $1 && go test -count=1 -run='${target}/NAME' .), where NAME follows ${target}/ in the output above"
      failed=1
    }
  done <<<"${targets}"
  return "${failed}"
)

failed=0
fuzz_package . example.com/sample-controller/... || failed=1
fuzz_package internal/plan example.com/sample-controller/... || failed=1
(cd test/fuzz && go test -vet=off -count=1 ${go_test_flags[@]+"${go_test_flags[@]}"} .) || failed=1
fuzz_package test/fuzz k8s.io/apiextensions-apiserver/... || failed=1
exit "${failed}"
