#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Shows how a Foo becomes a Pod: runs the controller in the development cluster of KUBECONFIG, applies the example Foo,
# and prints each write that follows: when, by whom, what, and after which other write. kubectl foo timeline takes them
# from the API server's audit log. make demo and make timeline run this in a new cluster:
#
#   demo.sh [-exit] [PICTURE]     -exit: also scale and delete the Foo, and then exit instead of running until Ctrl-C.
#                                 At the end, the timeline is drawn to PICTURE, by default _output/timeline.svg.

set -o errexit -o nounset -o pipefail
unset CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exits=
if [[ "${1:-}" == -exit ]]; then
  exits=yes
  shift
fi
picture=${1:-_output/timeline.svg}
data=$(dirname "${KUBECONFIG:-}")
audit=${data}/audit.log
if [[ ! -e "${audit}" || $# -gt 1 ]]; then
  echo "demo: it takes only -exit and a file, and needs a development cluster: run make demo" >&2
  exit 1
fi
# devcluster created these directories, and removes them with the cluster.
account=${data}/config/sample-controller.kubeconfig
log=${data}/logs/sample-controller.log
shown=${data}/config/shown
touch "${shown}"

foo="example-foo"
example=artifacts/examples/example-foo.yaml
limit=120 # seconds, for each step

kubectl() { bin/devcluster kubectl "$@"; }

# run prints a command as a user would type it, and runs it.
run() {
  echo "$ kubectl $*"
  kubectl "$@" >/dev/null
}

timeline() { bin/kubectl-foo timeline "${foo}" --audit="${audit}" --you="${you}" "$@"; }

# show prints the writes that it has not printed yet. It first waits until the log has not grown for a moment, because
# the API server logs a write after its response, and so may log an effect before its cause.
show() {
  local size now=
  until size=$(wc -c <"${audit}") && [[ "${size}" == "${now}" ]]; do
    now=${size}
    sleep 0.4
  done
  # The width of the columns may change.
  timeline | awk -v shown="${shown}" '
    BEGIN { while ((getline line <shown) > 0) known[line] }
    { line = $0; $1 = $1 }
    !($0 in known) { print line; print >>shown }'
}

# act runs a kubectl command, waits for its effect, and prints the writes.
act() {
  local effect=$1
  shift
  echo
  run "$@"
  # shellcheck disable=SC2086 # several arguments
  kubectl wait --timeout="${limit}s" ${effect} >/dev/null
  show
}

# draw draws the timeline, and prints where it is.
draw() {
  mkdir -p "$(dirname "${picture}")"
  timeline -o svg >"${picture}"
  printf '\nTo see this as a picture, open in a browser: %s\n' "${picture}"
}

# await repeats a command until it succeeds.
await() {
  SECONDS=0
  until "$@"; do
    if ((SECONDS > limit)); then
      echo "demo: not done within ${limit} s: $*" >&2
      exit 1
    fi
    sleep 0.2
  done
}

# garbage_collector_watches reports whether Foos have a second watch, besides the controller's.
# shellcheck disable=SC2317 # await calls it
garbage_collector_watches() {
  kubectl get --raw=/metrics | grep -E >/dev/null \
    '^apiserver_longrunning_requests\{.*resource="foos",scope="cluster".*verb="WATCH".*\} ([2-9]|[0-9]{2,})$'
}

# end draws the timeline of a demo that runs until Ctrl-C, and stops the programs that still run.
# shellcheck disable=SC2317 # a trap calls it
end() {
  local code=$?
  trap '' INT TERM HUP
  if [[ -n "${stopped:-}" && -n "${follows:-}" ]]; then
    draw || true
    code=0
    printf '\nStopping the controller and the cluster\n'
  elif [[ "${code}" -ne 0 && -e "${log}" ]]; then
    printf 'demo: failed, or stopped before the last step; the end of the log of the controller:\n%s\n' "$(tail -n 20 "${log}")" >&2
  fi
  # shellcheck disable=SC2046 # one argument for each process
  kill $(jobs -p) 2>/dev/null || true
  wait
  exit "${code}"
}
trap end EXIT
trap 'stopped=yes; exit 1' INT TERM HUP

cat <<'END'
Watch a Foo become a Pod on your own Kubernetes control plane, with the real etcd,
kube-apiserver, kube-controller-manager and kube-scheduler. KWOK acts as the node's kubelet:
Pods become Ready, but no image is pulled and no container runs.

END

you=$(kubectl auth whoami -o=jsonpath='{.status.userInfo.username}')
run apply --server-side -f artifacts/crd
run apply -k artifacts/deploy/permissions
run wait --for=condition=Established -f artifacts/crd

# The controller runs as its own service account.
cp "${KUBECONFIG}" "${account}"
for change in "unset users" "set-context --current --user=controller --namespace=sample-controller" \
  "set-credentials controller --token=$(kubectl create token -n sample-controller sample-controller --duration=24h)"; do
  # shellcheck disable=SC2086 # several arguments
  kubectl config ${change} --kubeconfig="${account}" >/dev/null
done
# The page learns from the Lease that the controller is running.
controller=(bin/sample-controller -v=2 -leader-elect -leader-elect-resource-namespace=sample-controller "-kubeconfig=${account}")
printf '$ %s\n  log: %s\n' "${controller[*]}" "${log}"
"${controller[@]}" >"${log}" 2>&1 &
pid=$!
await grep -q "Starting workers" "${log}"

if [[ -z "${exits}" ]]; then
  page=${data}/logs/page.log
  bin/kubectl-foo ui --all-namespaces --audit="${audit}" --you="${you}" >"${page}" 2>&1 &
  await test -s "${page}"
  printf '\nTo follow the Foo live in a browser, open:\n  %s\n' "$(cat "${page}")"
fi

cat <<'END'

Everything below comes from the API server's audit log: the ms since your last change, who
sent the request, what it wrote, and after what. (The API server delays the first objects of
a new kind by 2 s.)
END
act "foo/${foo} --for=condition=Ready" apply -f "${example}"

if [[ -n "${exits}" ]]; then
  act "foo/${foo} --for=jsonpath={.status.availableReplicas}=3" scale foo "${foo}" --replicas=3
  # If a Foo is deleted before that, it deletes what the Foo owns only much later.
  printf '\nWaiting for the garbage collector to discover Foos: it looks for new kinds every 30 s.\n'
  await garbage_collector_watches
  act "pod --selector=controller=${foo} --for=delete" delete foo "${foo}"
  draw
  exit
fi

draw
cat <<END

This terminal also prints further changes, with the ms since your last one. Try these in a second terminal:

  export KUBECONFIG=$(printf %q "${KUBECONFIG}")
  kubectl() { $(printf %q "${PWD}/bin/devcluster") kubectl "\$@"; }

  kubectl get foo,deployment,replicaset,pod
  kubectl scale foo example-foo --replicas=3
  kubectl delete pod -l controller=example-foo        # the ReplicaSet replaces them
  kubectl scale deployment example-foo --replicas=5   # drift: the controller undoes it
  kubectl edit foo example-foo
  kubectl delete foo example-foo                      # also deletes what it owns
  kubectl apply -f $(printf %q "${PWD}/${example}")

Ctrl-C here stops the controller and the cluster, and removes their data.

END
follows=yes
while kill -0 "${pid}" 2>/dev/null; do
  show
  sleep 1
done
exit 1
