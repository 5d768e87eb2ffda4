#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Builds a container image of the controller. It needs no daemon, base
# image or network.
#
#   hack/image.sh [-push [-force]] NAME PLATFORMS DIRECTORY
#   hack/image.sh -verify NAME@DIGEST
#
# PLATFORMS is a comma-separated list, such as linux/amd64,linux/arm64. The default is Linux on
# this machine's architecture; with -push it is both of these, because a cluster's nodes may have
# either. The script writes the program for each platform, and an archive of its image, to DIRECTORY.
# With -push, it also pushes the image to the registry in NAME. Without -force, it refuses to push
# if the tree has uncommitted changes, if Go is older than go.mod's toolchain, or if NAME already
# has another image.
#
# With -verify, the script rebuilds an image in a registry from the commit that the image names,
# and compares the digests.
#
# The same commit gives the same image, bit for bit, in any directory and for any user, if the Go
# release is the same and the clone has the same tags. The image also contains the license texts
# of everything that the program links: see hack/licenses.sh.

set -o errexit -o nounset -o pipefail
unset CDPATH

# build_tool builds bin/image for this machine.
build_tool() {
  env -u GOOS -u GOARCH hack/build.sh hack/tools ./image bin/image
}

fail() {
  echo "image: $*" >&2
  exit 1
}

# verify IMAGE rebuilds an image from the commit that it names, in a new clone, with that commit's
# version of this script.
verify() {
  local claims revision release fips140 platforms version tag at prefix rebuilt
  claims=$(bin/image -claims -image="$1")
  read -r revision release fips140 platforms version <<<"${claims}"
  printf '%s\nnames commit %s, version %s, %s and the platforms %s.\nRebuilding the commit:\n' \
    "$1" "${revision}" "${version:-unknown}" "${release}" "${platforms}"

  # The variables that git sets for its child processes would point to another repository.
  # shellcheck disable=SC2046
  unset $(git rev-parse --local-env-vars)
  # The project may be in a subdirectory of its repository.
  prefix=$(git rev-parse --show-prefix)
  if [[ "$(git rev-parse --verify --quiet "${revision}^{commit}")" != "${revision}" ]]; then
    fail "this clone has no commit ${revision}: run git fetch, or ask whoever built the image for the commit"
  fi
  # The go command writes the tag into the program. For a commit without a tag, it makes up a
  # version, even if the commit was tagged later.
  if [[ "${version}" =~ [.-][0-9]{14}-[0-9a-f]{12}$ ]]; then
    tag=""
  elif [[ -n "${version}" ]]; then
    tag="${prefix}${version}"
    at=$(git rev-parse --verify --quiet "refs/tags/${tag}^{commit}") ||
      fail "the image names version ${version}, but this clone has no tag ${tag}: run git fetch --tags"
    if [[ "${at}" != "${revision}" ]]; then
      fail "the image names version ${version} and commit ${revision}, but in this clone the tag ${tag} is at ${at}"
    fi
  fi

  scratch=$(mktemp -d)
  trap 'rm -rf "${scratch}"' EXIT
  git -c core.hooksPath=/dev/null clone --quiet --shared --no-checkout "$(git rev-parse --show-toplevel)" "${scratch}/clone"
  cd "${scratch}/clone"
  git -c core.hooksPath=/dev/null checkout --quiet --detach "${revision}"
  if [[ -n "${version}" && -z "${tag}" ]]; then
    git tag --points-at HEAD | while IFS= read -r tag; do
      git tag --delete "${tag}" >/dev/null
    done
  fi
  cd "./${prefix}"
  at=$(go env GOVERSION)
  if [[ "${at%% *}" != "${release}" ]]; then
    fail "the image was built with ${release}, but this is ${at}, which builds different programs: repeat with GOTOOLCHAIN=${release} in the environment"
  fi
  rebuilt=$(GOFIPS140="${fips140}" hack/image.sh rebuilt "${platforms}" "${scratch}/image") || fail "commit ${revision} cannot be built"
  echo "${rebuilt}" >&2
  # The first line is NAME@DIGEST PLATFORMS.
  rebuilt=$(grep -Eom1 'sha256:[0-9a-f]{64}' <<<"${rebuilt}")
  if [[ "${rebuilt}" != "${1##*@}" ]]; then
    fail "$1 differs from what its commit builds, ${rebuilt}: docs/releasing.md shows how to find the difference"
  fi
  echo "Verified: the commit builds the same image, ${rebuilt}."
}

if [[ $# -eq 2 && "$1" == -verify ]]; then
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  build_tool
  verify "$2"
  exit
fi

push=()
if [[ "${1:-}" == -push ]]; then
  push=(-push)
  shift
  if [[ "${1:-}" == -force ]]; then
    push+=(-force)
    shift
  fi
fi
if [[ $# -ne 3 ]]; then
  echo "usage: $0 [-push [-force]] NAME PLATFORMS DIRECTORY, or $0 -verify NAME@DIGEST" >&2
  exit 2
fi
readonly image="$1"
platforms="$2"
if [[ -z "${platforms}" ]]; then
  platforms="linux/$(go env GOHOSTARCH)"
  if [[ ${#push[@]} -gt 0 ]]; then
    platforms=linux/amd64,linux/arm64
  fi
fi
mkdir -p "$3"
dir="$(cd "$3" && pwd)"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Settings that would otherwise depend on the machine; hack/build.sh -release sets the others. The caller
# may choose Go's cryptographic module, for example because of a regulation: GOFIPS140=v1.0.0.
export GOWORK=off GOAMD64=v1 GOARM64=v8.0 GOPPC64=power8 GORISCV64=rva20u64 GOFIPS140="${GOFIPS140:-off}"
unset GOEXPERIMENT
# Settings from "go env -w" apply only to how modules and Go itself are downloaded, and where they
# are stored.
settings=(GOPROXY GOSUMDB GOPRIVATE GONOPROXY GONOSUMDB GOINSECURE GOVCS GOAUTH GOTOOLCHAIN GOMODCACHE GOCACHE)
i=0
while IFS= read -r value; do
  export "${settings[i]}=${value}"
  i=$((i + 1))
done <<<"$(go env "${settings[@]}")"
export GOENV=off

build_tool
programs=()
IFS=, read -r -a list <<<"${platforms}"
for platform in "${list[@]}"; do
  if [[ ! "${platform}" =~ ^(linux)/([a-z0-9]+)$ ]]; then
    echo "$0: platform ${platform}: must be linux/ARCHITECTURE, such as linux/arm64" >&2
    exit 2
  fi
  program="${dir}/${BASH_REMATCH[1]}_${BASH_REMATCH[2]}/sample-controller"
  GOOS="${BASH_REMATCH[1]}" GOARCH="${BASH_REMATCH[2]}" hack/build.sh -release . . "${program}"
  GOOS="${BASH_REMATCH[1]}" GOARCH="${BASH_REMATCH[2]}" hack/licenses.sh . "$(dirname "${program}")/licenses"
  programs+=("${program}")
done
bin/image ${push[@]+"${push[@]}"} -release="$(sed -n 's/^toolchain //p' go.mod)" -image="${image}" "${programs[@]}"
