#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Runs the end-to-end tests on each Kubernetes version that devcluster can emulate, one after
# the other, and writes a table of the results to kubernetes-versions.md, next to the other
# documents. It continues after a failure, and then exits with 1. The tests' output is in
# _output/skew.

set -euo pipefail
unset CDPATH
cd "$(dirname "${BASH_SOURCE[0]}")/.."

versions=$(bin/devcluster version)
kubernetes=$(awk '$1 == "Kubernetes" { print $2 }' <<<"${versions}")

# count RESULT LOG prints, for a table, how many tests ended with the result, and their names.
count() {
  local names
  names=$(sed -nE "s/^ *--- $1: ([^ ]+).*/\1/p" "$2")
  if [[ -z "${names}" ]]; then
    echo 0
  else
    echo "$(wc -l <<<"${names}"): $(paste -sd';' <<<"${names//|/\\|}" | sed 's/;/; /g')"
  fi
}

mkdir -p _output/skew
table=_output/skew/kubernetes-versions.md failed=0
printf '%s\n' '# Kubernetes versions' '' \
  'The end-to-end tests on each minor version that devcluster can emulate. Written by make skew.' \
  'The numbers include subtests.' '' '| Kubernetes | passed | failed | skipped | run with, on |' '|---|---|---|---|---|' >"${table}"
read -ra minors <<<"$(awk '$1 == "Emulates" { $1 = ""; print }' <<<"${versions}")"
for minor in "${minors[@]}"; do
  log=_output/skew/${minor}.log
  echo "${minor}: writing the output to ${log}"
  passed=1
  EMULATED_VERSION=${minor} GO_TEST_FLAGS=-v E2E_KUBECONFIG='' hack/check.sh e2e hack/e2e.sh >"${log}" 2>&1 || passed=0
  passes=$(count PASS "${log}" | cut -d: -f1) failures=$(count FAIL "${log}")
  if [[ "${passed}" == 0 && "${failures}" == 0 || "${passes}" == 0 ]]; then
    passed=0 failures="1: the run itself" # the build failed, or the run ended early or ran no test
  fi
  if [[ "${passed}" == 0 ]]; then
    failed=1
  fi
  row="| ${minor} | ${passes} | ${failures} | $(count SKIP "${log}") | ${kubernetes}, $(date -u +%F) |"
  echo "${row}" | tee -a "${table}"
done
cp -t docs "${table}"
exit "${failed}"
