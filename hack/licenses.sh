#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Collects the license texts of what a program links: of its modules, of this project, and of
# Go. Most licenses ask that a copy goes with the program.
#
#   hack/licenses.sh PACKAGE FOLDER
#
# FOLDER gets MODULE@VERSION/PATH for each text in the folder of a linked package, and in the
# folders above it in its module. It fails if a module has none.

set -o errexit -o nounset -o pipefail
shopt -s nullglob nocaseglob

if [[ $# -ne 2 ]]; then
  echo "usage: $0 PACKAGE FOLDER" >&2
  exit 2
fi
rm -rf "$2"
# The flags of hack/build.sh: they choose the packages.
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
packages=$(go list -deps -f '{{if not .Standard}}{{.Module.Path}}{{with .Module.Version}}@{{.}}{{end}}|{{.Module.Dir}}|{{.Dir}}{{end}}' "$1")
while IFS='|' read -r module root folder; do
  while :; do
    for text in "${folder}"/{licen[cs]e,copying,notice}*; do
      to="$2/${module}${text#"${root}"}"
      if [[ -f "${text}" && "${text}" != *.go && ! -e "${to}" ]]; then
        mkdir -p "$(dirname "${to}")"
        cat "${text}" >"${to}"
      fi
    done
    [[ "${folder}" == "${root}"/* ]] || break
    folder=${folder%/*}
  done
  # Whether this project has one is its own affair.
  if [[ "${module}" == *@* && ! -d "$2/${module}" ]]; then
    echo "$0: ${root} has no license text of ${module}" >&2
    exit 1
  fi
done <<<"${packages}
go@$(go env GOVERSION)|$(go env GOROOT)|$(go env GOROOT)"
