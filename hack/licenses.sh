#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Collects the license texts of everything that a program links: its modules, this project, and
# Go. Most licenses require that a copy accompanies the program.
#
#   hack/licenses.sh PACKAGE DIRECTORY
#
# It writes each text to DIRECTORY/MODULE@VERSION/PATH, from the directories of the linked packages
# and their parent directories in the module. It fails if a module has no license text.

set -o errexit -o nounset -o pipefail
shopt -s nullglob nocaseglob

if [[ $# -ne 2 ]]; then
  echo "usage: $0 PACKAGE DIRECTORY" >&2
  exit 2
fi
rm -rf "$2"
# The flags of hack/build.sh -release, because they determine the packages.
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
packages=$(go list -deps -f '{{if not .Standard}}{{.Module.Path}}{{with .Module.Version}}@{{.}}{{end}}|{{.Module.Dir}}|{{.Dir}}{{end}}' "$1")
while IFS='|' read -r module root dir; do
  while :; do
    for text in "${dir}"/{licen[cs]e,copying,notice}*; do
      to="$2/${module}${text#"${root}"}"
      if [[ -f "${text}" && "${text}" != *.go && ! -e "${to}" ]]; then
        mkdir -p "$(dirname "${to}")"
        cat "${text}" >"${to}"
      fi
    done
    [[ "${dir}" == "${root}"/* ]] || break
    dir=${dir%/*}
  done
  # This project may lack a license text.
  if [[ "${module}" == *@* && ! -d "$2/${module}" ]]; then
    echo "$0: ${root} has no license text of ${module}" >&2
    exit 1
  fi
done <<<"${packages}
go@$(go env GOVERSION)|$(go env GOROOT)|$(go env GOROOT)"
