#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Generates the files for the Prometheus Operator and Grafana from
# artifacts/monitoring/rules.yaml and dashboard.json.
#
#   hack/update-monitoring.sh             writes artifacts/monitoring/prometheus-rule.yaml, the alerts in rules.yaml
#   hack/update-monitoring.sh DIRECTORY   writes all of artifacts/monitoring to DIRECTORY, with these variables' values:
#
#     CLUSTER_LABEL   the label by which a central Prometheus, Thanos or Mimir distinguishes clusters
#     RUNBOOKS        the address of docs/operations.md, for runbook_url

set -o errexit -o nounset -o pipefail
unset CDPATH

# The values in artifacts/monitoring.
readonly default_label=cluster
readonly default_runbooks=https://example.com/sample-controller/blob/main/docs/operations.md
label=${CLUSTER_LABEL:-${default_label}}
runbooks=${RUNBOOKS:-${default_runbooks}}

# refuse MESSAGE prints an error and ends the script.
refuse() {
  echo "$0: $1" >&2
  exit 2
}
if [[ $# -gt 1 ]]; then
  refuse "usage: $0 [DIRECTORY]"
fi
if [[ ! "${label}" =~ ^[a-zA-Z_][a-zA-Z0-9_]*$ ]]; then
  refuse "CLUSTER_LABEL=${label}: must be the name of a label: letters, digits and _"
fi
# The first three are special characters of sed; # begins the anchor, which the rules add.
if [[ ! "${runbooks}" =~ ^https?://[^[:space:]]+$ || "${runbooks}" == *[\&\|\\\#]* ]]; then
  refuse "RUNBOOKS=${runbooks}: must be an http or https address without &, |, \\ and #"
fi

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../artifacts/monitoring" && pwd -P)
dir=${source_dir}
if [[ $# -eq 1 ]]; then
  mkdir -p "$1"
  dir=$(cd "$1" && pwd -P)
fi
if [[ "${dir}" == "${source_dir}" && "${label} ${runbooks}" != "${default_label} ${default_runbooks}" ]]; then
  refuse "artifacts/monitoring keeps the defaults: choose another DIRECTORY"
fi

# adapt FILE prints a file in which the values replace the defaults. It replaces the label
# in "by (cluster, job)", {cluster=~"..."}, label_values(up, cluster), {{cluster}} and
# $labels.cluster. Grafana's variable $cluster keeps its name.
adapt() {
  sed -E \
    -e "s/([(]|, )${default_label}([,)])/\1${label}\2/g" \
    -e "s/${default_label}=~/${label}=~/g" \
    -e "s/[{][{]${default_label}[}][}]/{{${label}}}/g" \
    -e "s/[.]${default_label} /.${label} /g" \
    -e "s|${default_runbooks}|${runbooks}|g" \
    "${source_dir}/$1"
}

new=$(mktemp -d)
trap 'rm -rf "${new}"' EXIT
adapt rules.yaml >"${new}/rules.yaml"
{
  cat <<'EOF'
# Generated from rules.yaml by hack/update-monitoring.sh: change rules.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: sample-controller
  namespace: sample-controller
  labels:
    app.kubernetes.io/name: sample-controller
spec:
EOF
  # Begin at the groups, without the comment about the file.
  sed -n '/^groups:/,$ { s/^\(.\)/  \1/; p; }' "${new}/rules.yaml"
} >"${new}/prometheus-rule.yaml"

if [[ "${dir}" == "${source_dir}" ]]; then
  cat "${new}/prometheus-rule.yaml" >"${dir}/prometheus-rule.yaml"
  exit
fi
adapt dashboard.json >"${new}/dashboard.json"
cp "${source_dir}/kustomization.yaml" "${source_dir}/scraper.yaml" "${source_dir}/service-monitor.yaml" "${new}"
cp "${new}"/* "${dir}"
