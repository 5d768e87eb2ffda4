#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Generates, compiles and unit-tests the root module with the newest Kubernetes modules at the
# module proxy, pre-releases included, in a copy of HEAD, and lists what changes and what breaks.
# The status is non-zero only if the script could not try.

set -euo pipefail
unset CDPATH
temp=$(mktemp -d)
trap 'rm -rf "${temp}"' EXIT
git clone -q "$(dirname "${BASH_SOURCE[0]}")/.." "${temp}/copy"
cd "${temp}/copy"
export GOWORK=off GOTOOLCHAIN=auto

# quietly COMMAND... prints the output, to stderr, only if the command fails.
quietly() { "$@" >"${temp}/log" 2>&1 || { cat "${temp}/log" >&2 && return 1; }; }
# list TITLE prints the lines of standard input as a list.
list() { echo "$1:" && { sed 's/^/  /' | grep . || echo "  nothing"; }; }
vet() { go vet ./... 2>&1 | grep -v '^#'; }
# failures PACKAGE... prints each unit test that fails, or each package that fails without one.
failures() {
  go test -short -vet=off "$@" 2>&1 | awk '/^--- FAIL:/ { test[++n] = $3 }
    /^FAIL\t/ { if (!n) print $2, $4 ? $3 " " $4 : "outside a test"; for (; n; n--) print $2, test[n] }' | LC_ALL=C sort
}

now=$(go list -m -f '{{.Version}}' k8s.io/client-go)
mapfile -t modules < <(go list -m -f '{{if not .Indirect}}{{.Path}} {{.Version}}{{end}}' all | sed -n "s/ ${now}\$//p")
# The newer versions that all of them have, newest first. "~" sorts a pre-release before its release.
versions=$(go list -m -versions "${modules[@]}")
mapfile -t newer < <(tr ' -' '\n~' <<<"${versions}" | grep '^v0\.' | sort -V | uniq -c | tr '~' - |
  awk -v all="${#modules[@]}" -v now="${now}" '$1 == all && seen { print $2 } $2 == now { seen = 1 }' | tac)
[[ "${#newer[@]}" -gt 0 ]] || { echo "The module proxy has no Kubernetes modules newer than ${now}" && exit; }
for next in "${newer[@]}"; do
  # kube-openapi has no releases, and the proxy may lack the commit that the modules require.
  # With -e, because the compiler reports a package that is gone.
  if go get "${modules[@]/%/@${next}}" k8s.io/kube-openapi@latest >"${temp}/log" 2>&1 &&
    go mod tidy -e >>"${temp}/log" 2>&1 && ! grep -q ': reading ' "${temp}/log"; then
    break
  fi
  echo "${next} can't be tried:" >&2
  grep ': reading ' "${temp}/log" >&2 || cat "${temp}/log" >&2
  git checkout -q .
  next=
done
[[ -n "${next}" ]] || exit 1
GOTOOLCHAIN=$(go env GOVERSION)+auto # generators read the new sources, so they need the new Go
echo "From ${now} to ${next}, with ${GOTOOLCHAIN%+*}"

set +eo pipefail # from here on, a failure is a result
vet | list "Before generating, go vet reports"
smd=$(go list -m -f '{{.Path}}' all | grep /structured-merge-diff/ | sort -V | tail -1)
if ! go -C hack/codegen get k8s.io/{code-generator,apiextensions-apiserver}@"${next}" k8s.io/kube-openapi@latest 2>"${temp}/log"; then
  echo "The proxy has no generators of ${next}. Those of ${now} generate, changed to import structured-merge-diff/${smd##*/}"
  cp -R "$(go -C hack/codegen list -m -f '{{.Dir}}' k8s.io/code-generator)" "${temp}/generators"
  chmod -R u+w "${temp}/generators"
  sed -i "s|sigs.k8s.io/structured-merge-diff/v[0-9]*|${smd}|" "${temp}"/generators/cmd/applyconfiguration-gen/generators/*.go
  go -C hack/codegen mod edit -replace "k8s.io/code-generator=${temp}/generators"
fi
quietly hack/update-codegen.sh 2>&1 | list "The generators' errors"
quietly go mod tidy -e
git diff --stat=100 -- pkg artifacts | list "Generated files that differ"
git diff -U1 -- artifacts | grep '^[-+ ][^-+]' | list "Differences of the manifests"
vet | list "What does not compile, or go vet reports"
failures ./... >"${temp}/next"
git checkout -q --force && git clean -fdqx # test what failed with the current modules, too
mapfile -t packages < <(cut -d ' ' -f 1 "${temp}/next" | uniq)
[[ "${#packages[@]}" == 0 ]] || failures "${packages[@]}" >"${temp}/now"
touch "${temp}/now" && LC_ALL=C comm -23 "${temp}/next" "${temp}/now" | list "Unit tests that fail only with ${next}"
