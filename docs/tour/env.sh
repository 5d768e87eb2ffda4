# shellcheck shell=bash

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

# For the tour, docs/tour.md: source this file first in each terminal, in the root of the repository.
#
#   source docs/tour/env.sh

tour_root=$PWD
export KUBECONFIG=${tour_root}/_output/tour/kubeconfig

# The same as in hack/build.sh, because the build cache depends on them.
export GOFLAGS="-trimpath -buildvcs=false" CGO_ENABLED=0

# Use the kubectl in devcluster if there is no other.
if ! command -v kubectl >/dev/null; then
  kubectl() { "${tour_root}/bin/devcluster" kubectl "$@"; }
fi

# audit [NAMESPACE] shows the writes that the API server has answered: time, user, request, status code.
audit() { (cd "${tour_root}" && go run ./tools/timeline -text -audit=_output/tour/audit.log -namespace="${1:-}"); }

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
