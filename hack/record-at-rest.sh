#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Records what this code leaves at rest on a development cluster, for the test that a later version
# writes nothing to it: testdata/at-rest/VERSION.yaml. Run it before each release.
#
#   hack/record-at-rest.sh VERSION

set -o errexit -o nounset -o pipefail
unset CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ $# -ne 1 ]]; then
  echo "usage: $0 VERSION, for example v0.1.0" >&2
  exit 2
fi
if [[ "${1}" != -inside ]]; then
  make bin/devcluster
  hack/build.sh . . bin/sample-controller
  data=$(mktemp -d)
  trap 'rm -rf "${data}"' EXIT
  RECORD=testdata/at-rest/$1.yaml bin/devcluster run -nodes=1 -data-dir="${data}" -- "${BASH_SOURCE[0]}" -inside
  exit
fi

kubectl() { bin/devcluster kubectl "$@"; }
# foo NAME DEPLOYMENT [FIELDS] creates a Foo.
foo() {
  kubectl apply -f - <<YAML
{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo, metadata: {name: $1}, spec: {deploymentName: $2${3:+, $3}}}
YAML
}
# await NAME REASON waits for the reason of a Foo's condition Ready.
await() {
  kubectl wait "foo/$1" --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'="$2" --timeout=2m
}

kubectl apply --server-side -f artifacts/crd
kubectl wait --for=condition=Established crd/foos.samplecontroller.k8s.io
bin/sample-controller -kubeconfig="${KUBECONFIG}" -leader-elect=false &
trap 'kill %1; wait' EXIT

foo ready ready "replicas: 2"
foo default default
foo renamed earlier "replicas: 1"
foo scaled scaled
foo edited edited "replicas: 1"
foo paused paused "replicas: 1"
foo suspended suspended "replicas: 1"
kubectl create deployment orphan --image=nginx:latest
kubectl create deployment foreign --image=nginx:latest
for name in ready default renamed scaled edited paused suspended; do await "${name}" Available; done
foo renamed renamed "replicas: 1"
kubectl scale deployment/scaled --replicas=3
kubectl label deployment/edited platform.example.com/team=blue
kubectl annotate deployment/edited platform.example.com/checked=yes
kubectl patch deployment/edited -p '{"spec": {"template": {"spec": {"priority": 0, "containers": [{"name": "nginx", "resources": {"requests": {"cpu": "10m"}}}]}}}}'
kubectl rollout pause deployment/paused
kubectl patch foo/suspended --type=merge -p '{"spec": {"suspend": true}}'
foo new-and-suspended never "suspend: true"
foo conflict foreign
foo adopts orphan
kubectl annotate deployment/orphan samplecontroller.k8s.io/adopt-by=adopts
kubectl wait foo/suspended --for=jsonpath='{.status.observedGeneration}'=2
await new-and-suspended Suspended
await conflict DeploymentConflict
await adopts Available
await renamed Available
kubectl wait --for=delete deployment/earlier
kubectl rollout status deployment/edited
sleep 10 # a status that reports only progress may be 5 s late
mkdir -p testdata/at-rest
kubectl get deployments,foos -o yaml >"${RECORD}"
