#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Runs the end-to-end tests: hack/check.sh e2e hack/e2e.sh. They use the cluster in
# E2E_KUBECONFIG, or a devcluster that emulates the Kubernetes version in EMULATED_VERSION, such
# as 1.35.

set -o errexit -o nounset -o pipefail
unset CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export DEVCLUSTER_BIN=${PWD}/bin/devcluster
read -r -a go_test_flags <<<"${GO_TEST_FLAGS:-}"
# Many at a time, because they mostly wait for the cluster.
tests=(go test -vet=off -parallel=16 ${go_test_flags[@]+"${go_test_flags[@]}"} -count=1 -timeout=40m ./test/e2e)
if [[ -z "${E2E_KUBECONFIG:-}" ]]; then
  # shellcheck disable=SC2016 # the shell in the cluster expands it
  exec "${DEVCLUSTER_BIN}" run -nodes=2 -emulated-version="${EMULATED_VERSION:-}" -- \
    sh -c 'E2E_KUBECONFIG=${KUBECONFIG} exec "$@"' sh "${tests[@]}"
fi
if [[ ! -f "${E2E_KUBECONFIG}" ]]; then
  echo "KUBECONFIG=${E2E_KUBECONFIG}: no such file"
  exit 1
fi
dir=$(cd "$(dirname "${E2E_KUBECONFIG}")" && pwd)
E2E_KUBECONFIG=${dir}/$(basename "${E2E_KUBECONFIG}") exec "${tests[@]}"
