#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Builds the programs that the benchmark measures, and prints the versions of what it compares:
# in each line a name, a space and a version. The first line describes the machine.
#
#   test/bench/contenders.sh DIRECTORY

set -o errexit -o nounset -o pipefail
unset CDPATH

mkdir -p "$1"
output=$(cd "$1" && pwd -P)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
memory=$(awk '/^MemTotal/ { printf "%.1f", $2 / 1024 / 1024 }' /proc/meminfo)
echo "machine $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, ${memory} GiB of memory," \
  "$(go env GOOS)/$(go env GOARCH), kernel $(uname -r)"
hack/build.sh -release . . "${output}/ours" >&2
# What is measured of ours counts until something changes that ours is built from.
packages=$(go list -deps -f '{{if and .Module .Module.Main}}:(glob){{.Dir}}/*.go{{end}}' .)
mapfile -t sources <<<"${packages}"
sources+=(go.mod go.sum ':(exclude)*_test.go')
changed=$(git status --porcelain -- "${sources[@]}")
git log -1 --format="ours commit %H${changed:+, with changes}" -- "${sources[@]}"
bin/devcluster version | awk 'NF == 2 { print $1, $2 }'

cd test/bench
# As hack/build.sh -release builds.
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false" GOWORK=off
readonly upstream=k8s.io/sample-controller
go list -m -f '{{.Path}} {{.Version}}' "${upstream}" sigs.k8s.io/controller-runtime
build() {
  go build -ldflags="-s -w" -o "${output}/$1" "${@:2}"
}
build controller-runtime ./contender/controllerruntime
build bare ./contender/bare

# Upstream's module with our main.go, as a copy: the module cache is read-only, and go build
# -overlay rejects files in it.
scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
cp -R "$(go list -m -f '{{.Dir}}' "${upstream}")" "${scratch}/upstream"
chmod -R u+w "${scratch}"
cp contender/upstream-main.go.txt "${scratch}/upstream/main.go"
cp go.mod go.sum "${scratch}"
echo "replace ${upstream} => ${scratch}/upstream" >>"${scratch}/go.mod"
build upstream-unlimited -modfile="${scratch}/go.mod" "${upstream}"
