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

# Builds a Go program, and shows how far it is: the first build of a large one takes minutes.
#
#   hack/build.sh [-stamp] MODULE_FOLDER PACKAGE OUTPUT
#
# PACKAGE is relative to MODULE_FOLDER, OUTPUT to the working directory. Says nothing when OUTPUT is up to date.
# With -stamp the go command writes the commit and the version made of it into OUTPUT, if git knows them.

set -o errexit -o nounset -o pipefail

stamp=""
if [[ "${1:-}" == -stamp ]]; then
  stamp=yes
  shift
fi
if [[ $# -ne 3 ]]; then
  echo "usage: $0 [-stamp] MODULE_FOLDER PACKAGE OUTPUT" >&2
  exit 2
fi

package="$2"
mkdir -p "$(dirname "$3")"
output_folder="$(cd "$(dirname "$3")" && pwd)"
output="${output_folder}/$(basename "$3")"
name="$(basename "$3")"
cd "$1"

# The same for every build, because each of them is part of what the build cache goes by.
export CGO_ENABLED=0
export GOFLAGS="-trimpath -buildvcs=false"

# committed says whether git has a commit with this folder. It has none where the sources came without .git, even if they
# lie inside somebody else's repository; and it does not say where the clone belongs to another user. The go command
# would name the wrong commit for the one, and fail for the other.
committed() {
  git rev-parse --verify HEAD:./go.mod >/dev/null 2>&1
}

# Only package main and the link depend on the commit: the rest of the build cache still serves everything.
if [[ -n "${stamp}" ]] && committed; then
  GOFLAGS="-trimpath -buildvcs=auto"
  # The go command asks git for the status, which must not hold up a commit that is made meanwhile.
  export GIT_OPTIONAL_LOCKS=0
fi

# The go command renames its result into place if it is on the same file system, so that there is never half an
# OUTPUT; and it leaves an OUTPUT alone that is up to date.
GOTMPDIR="$(mktemp -d "${output_folder}/.build-XXXXXX")"
export GOTMPDIR
trap 'rm -rf "${GOTMPDIR}"' EXIT

ldflags="-s -w"
# Kubernetes' programs learn their version from the linker; without it, kubectl version fails.
kubernetes="$(sed -n 's|^[[:space:]]*k8s\.io/kubernetes \(v[0-9][^ ]*\).*|\1|p' go.mod)"
if [[ -n "${kubernetes}" ]]; then
  IFS=. read -r major minor _ <<<"${kubernetes#v}"
  for variables in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    ldflags+=" -X ${variables}.gitVersion=${kubernetes}"
    ldflags+=" -X ${variables}.gitMajor=${major} -X ${variables}.gitMinor=${minor}"
    ldflags+=" -X ${variables}.gitCommit="
  done
fi

on_terminal=""
if [[ -t 2 ]]; then
  on_terminal=yes
fi
readonly erase_line=$'\r\033[K'

# show LINE: replaces the last line on a terminal, adds one to a pipe.
show() {
  if [[ -n "${on_terminal}" ]]; then
    printf '%s%s' "${erase_line}" "$1" >&2
  else
    printf '%s\n' "$1" >&2
  fi
}

# show_above LINE: a line that stays.
show_above() {
  if [[ -n "${on_terminal}" ]]; then
    printf '%s' "${erase_line}" >&2
  fi
  printf '%s\n' "$1" >&2
}

# follow TOTAL: reads what the go command prints, and turns it into progress.
follow() {
  local total="$1" line modules=0 built=0 shown=-1 percent linking=""
  while IFS= read -r line; do
    if [[ "${line}" == "go: downloading "* ]]; then
      modules=$((modules + 1))
      if [[ -n "${on_terminal}" || $((modules % 25)) -eq 1 ]]; then
        show "${name}: downloading modules: ${modules}"
      fi
    elif [[ "${line}" =~ ^[A-Za-z0-9_.~/-]+$ ]]; then
      built=$((built + 1))
      percent=$((total > 0 ? built * 100 / total : 0))
      if [[ "${built}" -eq "${total}" ]]; then
        linking=", linking"
      fi
      if [[ -n "${on_terminal}" || $((percent / 5)) -ne ${shown} ]]; then
        shown=$((percent / 5))
        show "${name}: built ${built} of ${total} packages (${percent} %), ${SECONDS} s${linking}"
      fi
    else
      show_above "${line}"
    fi
  done
  if [[ -n "${on_terminal}" && $((modules + built)) -gt 0 ]]; then
    printf '%s' "${erase_line}" >&2
  fi
}

# The list of packages goes to a file and what the go command says of its work to follow.
packages="${GOTMPDIR}/packages"
go list -deps -ldflags="${ldflags}" -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${package}" 2>&1 >"${packages}" | follow 0
total="$(grep -c . "${packages}" || true)"
go build -v -ldflags="${ldflags}" -o "${output}" "${package}" 2>&1 | follow "${total}"
if [[ "${SECONDS}" -ge 10 ]]; then
  show_above "${name}: built in ${SECONDS} s"
fi
