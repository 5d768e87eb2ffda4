# shellcheck shell=bash

# SPDX-License-Identifier: Apache-2.0

# For the tour, docs/tour.md: source this file first in each terminal, in the root of the repository.
#
#   source docs/tour/env.sh

tour_root=$PWD
export KUBECONFIG=${tour_root}/_output/tour/kubeconfig

# kubectl finds the plugin kubectl-foo in PATH.
export PATH=${tour_root}/bin:${PATH}

# Use the kubectl in devcluster if there is no other.
if ! command -v kubectl >/dev/null; then
  kubectl() { "${tour_root}/bin/devcluster" kubectl "$@"; }
fi

# audit FOO [NAMESPACE] shows the writes to a Foo and to what it owns, from the API server's audit log: who sent each
# request, what it wrote, and after which other write.
audit() {
  kubectl foo timeline "$1" --namespace="${2:-default}" --you=devcluster-admin --audit="${tour_root}/_output/tour/audit.log"
}

# metrics PATTERN... shows the lines of the controller's metrics that begin with one of the patterns. Reading them needs
# a token and a permission, so this uses the service account "reader".
metrics() {
  local token pattern patterns=()
  token=$(kubectl create token reader) || return
  for pattern in "$@"; do
    patterns+=(-e "^${pattern}")
  done
  kubectl --kubeconfig=/dev/null --server=https://127.0.0.1:18443 --insecure-skip-tls-verify --token="${token}" \
    get --raw /metrics | grep -E "${patterns[@]}"
}

# count PATTERN... adds up what these metrics say.
count() { metrics "$@" | awk '{ sum += $NF } END { print sum }'; }
