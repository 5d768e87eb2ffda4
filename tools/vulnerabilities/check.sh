#!/usr/bin/env bash

# Copyright The Sample Controller Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Reports the known vulnerabilities that programs reach, with govulncheck.
#
#   tools/vulnerabilities/check.sh [MODULE_FOLDER...]
#
# The default is the modules whose programs are released. The exit status is 3 if there are
# vulnerabilities, and 75 if the database can't be read: then nothing is known about them.
# $VULNERABILITY_DATABASE is the address of a copy.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ $# -eq 0 ]]; then
  set -- .
  for module in tools/*/go.mod; do
    [[ "${module}" != */kubectl-* ]] || set -- "$@" "$(dirname "${module}")"
  done
fi
export GOFLAGS="-trimpath -buildvcs=false" CGO_ENABLED=0 GOWORK=off
hack/build.sh tools/vulnerabilities golang.org/x/vuln/cmd/govulncheck bin/govulncheck
database=${VULNERABILITY_DATABASE:-https://vuln.go.dev}
messages=$(mktemp)
trap 'rm -f "${messages}"' EXIT
result=0
for module in "$@"; do
  echo "--- ${module}"
  status=0
  bin/govulncheck -db="${database}" -C "${module}" . 2>"${messages}" || status=$?
  cat "${messages}" >&2
  if grep -qE '(creating client|fetching vulnerabilities): ' "${messages}"; then
    echo "${database} can't be read: whether ${module} has vulnerabilities is not known" >&2
    status=75
  fi
  if [[ "${status}" -ne 0 && "${result}" -ne 3 ]]; then
    result=${status}
  fi
done
exit "${result}"
