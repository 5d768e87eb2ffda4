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

# Makes a container image of the controller, without a daemon, a base image or a network, and lists what is in it.
#
#   hack/image.sh [-push [-force]] NAME PLATFORMS FOLDER
#   hack/image.sh -verify NAME@DIGEST
#
# PLATFORMS is a list with commas, such as linux/amd64,linux/arm64; where it is empty, linux on this machine's
# architecture. FOLDER gets sample-controller.tar and, for each platform, sample-controller_OS_ARCHITECTURE.cdx.json.
# With -push the image also goes to the registry that NAME says; unless there is -force, not from a tree with changes
# that are not committed, and not over another image of that name.
#
# With -verify the commit that an image in a registry says that it was built from is built again, and has to make the
# same image. What differs is listed.
#
# The same commit gives the same image, to the bit, in any folder and for any user, if the Go release is the same and the
# clone has the same tags.

set -o errexit -o nounset -o pipefail

# build_tool builds bin/image for this machine.
build_tool() {
  env -u GOOS -u GOARCH hack/build.sh tools/image . bin/image
}

if [[ $# -eq 2 && "$1" == -verify ]]; then
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  build_tool
  exec bin/image -verify -image="$2"
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
  echo "usage: $0 [-push [-force]] NAME PLATFORMS FOLDER, or $0 -verify NAME@DIGEST" >&2
  exit 2
fi
readonly image="$1"
platforms="${2:-linux/$(go env GOHOSTARCH)}"
mkdir -p "$3"
folder="$(cd "$3" && pwd)"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What the environment of one machine would otherwise bring into the program. hack/build.sh sets the rest. Which of Go's
# cryptographic modules is built in is for the caller to say, as a rule of theirs may ask for it: GOFIPS140=v1.0.0.
export GOWORK=off GOAMD64=v1 GOARM64=v8.0 GOPPC64=power8 GORISCV64=rva20u64 GOFIPS140="${GOFIPS140:-off}"
unset GOEXPERIMENT

build_tool
programs=()
IFS=, read -r -a list <<<"${platforms}"
for platform in "${list[@]}"; do
  if [[ ! "${platform}" =~ ^(linux)/([a-z0-9]+)$ ]]; then
    echo "$0: platform ${platform}: must be linux/ARCHITECTURE, such as linux/arm64" >&2
    exit 2
  fi
  program="${folder}/${BASH_REMATCH[1]}_${BASH_REMATCH[2]}/sample-controller"
  GOOS="${BASH_REMATCH[1]}" GOARCH="${BASH_REMATCH[2]}" hack/build.sh -stamp . . "${program}"
  programs+=("${program}")
done
rm -f "${folder}"/sample-controller_*.cdx.json
bin/image ${push[@]+"${push[@]}"} -image="${image}" -folder="${folder}" "${programs[@]}"
