#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Writes the manifests of the installation to one file, for users without kustomize.
#
#   hack/install-yaml.sh IMAGE OUTPUT
#
# IMAGE is the controller's image with its registry: NAME[:TAG][@DIGEST]. The script uses
# the kubectl in bin/devcluster, or, without devcluster, kubectl itself.

set -o errexit -o nounset -o pipefail
unset CDPATH

if [[ $# -ne 2 ]]; then
  echo "usage: $0 IMAGE OUTPUT" >&2
  exit 2
fi
image="$1"
# It is written to YAML unquoted.
if [[ ! "${image}" =~ ^[A-Za-z0-9._:/@+-]+$ ]]; then
  printf '%s: %q is not the name of an image\n' "$0" "${image}" >&2
  exit 2
fi
mkdir -p "$(dirname "$2")"
output="$(cd "$(dirname "$2")" && pwd)/$(basename "$2")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

digest=""
if [[ "${image}" == *@* ]]; then
  digest="${image##*@}"
  image="${image%@*}"
fi
tag=""
# A colon before the last slash belongs to the registry's port.
if [[ "${image##*/}" == *:* ]]; then
  tag="${image##*:}"
  image="${image%:*}"
fi
if [[ -z "${tag}${digest}" ]]; then
  echo "$0: ${image}: must have a tag or a digest" >&2
  exit 2
fi

# kustomize reads only relative paths.
mkdir -p _output
overlay="$(mktemp -d _output/install-XXXXXX)"
trap 'rm -rf "${overlay}"' EXIT
{
  echo "resources: [../../artifacts/deploy]"
  echo "images:"
  echo "- name: sample-controller"
  echo "  newName: ${image}"
  if [[ -n "${tag}" ]]; then
    echo "  newTag: \"${tag}\""
  fi
  if [[ -n "${digest}" ]]; then
    echo "  digest: ${digest}"
  fi
} >"${overlay}/kustomization.yaml"
kubectl=(kubectl)
if [[ -n "${DEVCLUSTER_BIN:-}" || -d devcluster ]]; then
  kubectl=("${DEVCLUSTER_BIN:-bin/devcluster}" kubectl)
fi
"${kubectl[@]}" kustomize "${overlay}" >"${overlay}/install.yaml"
mv "${overlay}/install.yaml" "${output}"
echo "Wrote ${output}"
