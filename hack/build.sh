#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Builds a Go program and shows progress, because the first build of a large program takes
# minutes.
#
#   hack/build.sh [-stamp|-release] MODULE_DIRECTORY PACKAGE OUTPUT
#
# PACKAGE is relative to MODULE_DIRECTORY, OUTPUT to the working directory. The script prints
# nothing if OUTPUT is up to date. With -stamp the go command writes the commit and its
# version into OUTPUT, if git knows them. With -release OUTPUT also depends on nothing else
# than the sources and the Go release.

set -o errexit -o nounset -o pipefail
unset CDPATH

stamp=""
# Other builds have no flags that compiled packages depend on, so that go run and go test need
# not compile everything once more.
if [[ "${1:-}" == -release ]]; then
  stamp=yes
  export CGO_ENABLED=0 GOFLAGS=-trimpath
  shift
elif [[ "${1:-}" == -stamp ]]; then
  stamp=yes
  shift
fi
if [[ $# -ne 3 ]]; then
  echo "usage: $0 [-stamp|-release] MODULE_DIRECTORY PACKAGE OUTPUT" >&2
  exit 2
fi

package="$2"
mkdir -p "$(dirname "$3")"
output_dir="$(cd "$(dirname "$3")" && pwd)"
output="${output_dir}/$(basename "$3")"
name="$(basename "$3")"
cd "$1"

# committed reports whether git has a commit that contains this directory. It fails for sources
# without .git, even inside another repository, whose commit the go command would write. It
# also fails if the clone belongs to another user, because the go command would then fail.
committed() {
  git rev-parse --verify HEAD:./go.mod >/dev/null 2>&1
}

# Only package main and the linking depend on the commit. Everything else stays in the build
# cache.
buildvcs=false
if [[ -n "${stamp}" ]] && committed; then
  buildvcs=auto
  # The go command runs git status, which must not lock the index during a commit.
  export GIT_OPTIONAL_LOCKS=0
fi

# On the same file system, the go command renames its result into place, so that OUTPUT is
# never incomplete. It does not touch an OUTPUT that is up to date.
GOTMPDIR="$(mktemp -d "${output_dir}/.build-XXXXXX")"
export GOTMPDIR
trap 'rm -rf "${GOTMPDIR}"' EXIT

# Otherwise a fifth of the time goes to the garbage collection of the compiler. The largest link takes
# 3.7 GB of memory in place of 3.2.
export GOGC="${GOGC:-400}"

ldflags="-s -w"
# Kubernetes' programs get their version from the linker. Without it, kubectl version
# fails.
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

# show LINE replaces the last line on a terminal, and adds a line to a pipe.
show() {
  if [[ -n "${on_terminal}" ]]; then
    printf '%s%s' "${erase_line}" "$1" >&2
  else
    printf '%s\n' "$1" >&2
  fi
}

# show_above LINE prints a line that stays above the progress.
show_above() {
  if [[ -n "${on_terminal}" ]]; then
    printf '%s' "${erase_line}" >&2
  fi
  printf '%s\n' "$1" >&2
}

# follow TOTAL turns the output of the go command into a display of progress.
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
        show "${name}: built ${built} of ${total} packages (${percent}%), ${SECONDS} s${linking}"
      fi
    else
      show_above "${line}"
    fi
  done
  if [[ -n "${on_terminal}" && $((modules + built)) -gt 0 ]]; then
    printf '%s' "${erase_line}" >&2
  fi
}

# The list of packages goes to a file, and the messages of the go command to follow.
packages="${GOTMPDIR}/packages"
go list -deps -buildvcs="${buildvcs}" -ldflags="${ldflags}" -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${package}" 2>&1 >"${packages}" | follow 0
total="$(grep -c . "${packages}" || true)"
go build -v -buildvcs="${buildvcs}" -ldflags="${ldflags}" -o "${output}" "${package}" 2>&1 | follow "${total}"
if [[ "${SECONDS}" -ge 10 ]]; then
  show_above "${name}: built in ${SECONDS} s"
fi
