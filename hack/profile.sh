#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Records hack/release.pgo, the CPU profile by which hack/build.sh -release optimizes the controller: of 1,000 Foos
# that are created, scaled and deleted on a development cluster with all components. It takes three minutes.
#
# A controller spends nearly all of its time in client-go, so an older profile loses little. Record it
# again before a release if the libraries are new.

set -o errexit -o nounset -o pipefail
unset CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ "${1:-}" != -inside ]]; then
  make bin/devcluster
  hack/build.sh . . bin/sample-controller
  bin/devcluster run -nodes=10 -- "${BASH_SOURCE[0]}" -inside
  exit
fi

kubectl() { bin/devcluster kubectl "$@"; }
# foos REPLICAS prints a thousand Foos.
foos() {
  local i
  for i in {1..1000}; do
    echo "---
{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo, metadata: {name: foo-${i}}, spec: {deploymentName: foo-${i}, replicas: $1}}"
  done
}

kubectl apply --server-side -f artifacts/crd
kubectl wait --for=condition=Established crd/foos.samplecontroller.k8s.io
kubectl create serviceaccount profiler
kubectl create clusterrolebinding profiler --clusterrole=cluster-admin --serviceaccount=default:profiler
address=127.0.0.1:18443
GOMAXPROCS=1 bin/sample-controller -kubeconfig="${KUBECONFIG}" -leader-elect=false -metrics-bind-address="${address}" -profiling &
trap 'kill $(jobs -p) || true; wait' EXIT
kubectl wait --for=create serviceaccount/default

# profile gets the profile of the next two minutes.
profile() {
  curl --fail --silent --show-error --insecure --retry 10 --retry-connrefused --header @- \
    "https://${address}/debug/pprof/profile?seconds=120" --output hack/release.pgo
}
kubectl create token profiler | sed 's/^/Authorization: Bearer /' | profile &
foos 1 | kubectl create -f -
foos 2 | kubectl apply --server-side --force-conflicts -f -
kubectl delete foos --all --wait=false
wait %2
