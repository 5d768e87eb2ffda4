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

# Makes artifacts/monitoring/prometheus-rule.yaml of rules.yaml: the same alerts, as the Prometheus Operator takes them.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../artifacts/monitoring"
new=$(mktemp)
trap 'rm -f "${new}"' EXIT
{
  cat <<'EOF'
# Made from rules.yaml by hack/update-monitoring.sh: change that one.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: sample-controller
  namespace: sample-controller
  labels:
    app.kubernetes.io/name: sample-controller
spec:
EOF
  # From the groups on, without the comment about the file.
  sed -n '/^groups:/,$ { s/^\(.\)/  \1/; p; }' rules.yaml
} >"${new}"
cat "${new}" >prometheus-rule.yaml
