#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Builds kubectl-foo for each platform, and writes an archive of each, with the license texts
# of what it links, and foo.yaml, the manifest by which krew (krew.sigs.k8s.io) installs it.
#
#   tools/kubectl-foo/krew.sh VERSION URL DIRECTORY PLATFORM...
#
# VERSION is the release's tag, such as v1.2.3. URL is where you will upload the archives. If
# it is empty, it is the place of a GitHub release, by the module's path in go.mod. PLATFORM
# is like linux/amd64.

set -o errexit -o nounset -o pipefail
unset CDPATH

if [[ $# -lt 4 || ! "$1" =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "usage: $0 VERSION URL DIRECTORY PLATFORM..., with a VERSION such as v1.2.3" >&2
  exit 2
fi
readonly version="$1"
mkdir -p "$3"
folder="$(cd "$3" && pwd)"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export GOWORK=off
homepage="https://$(go list -m)"
readonly url="${2:-${homepage}/releases/download/${version}}"
shift 3

parts="$(mktemp -d)"
trap 'rm -rf "${parts}"' EXIT
cat >"${parts}/foo.yaml" <<EOF
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: foo
spec:
  version: ${version}
  homepage: ${homepage}
  shortDescription: Preview and explain what Foos get and why
  description: |
    Shows what the controller of Foos would write before it writes it, why a Foo is in its
    current state, and who wrote what. It uses the controller's own decision functions. Only
    adopt writes: it lets Foos adopt what was theirs before a restore from a backup.
  platforms:
EOF
for platform in "$@"; do
  export GOOS="${platform%/*}" GOARCH="${platform#*/}"
  hack/build.sh -release tools/kubectl-foo . "${parts}/kubectl-foo"
  (cd tools/kubectl-foo && ../../hack/licenses.sh . "${parts}/licenses")
  archive="kubectl-foo_${GOOS}_${GOARCH}.tar.gz"
  cp LICENSE "${parts}"
  tar -czf "${folder}/${archive}" -C "${parts}" LICENSE kubectl-foo licenses
  sum="$({ sha256sum "${folder}/${archive}" 2>/dev/null || shasum -a 256 "${folder}/${archive}"; } | cut -d ' ' -f 1)"
  cat >>"${parts}/foo.yaml" <<EOF
  - uri: ${url}/${archive}
    sha256: ${sum}
    bin: kubectl-foo
    selector:
      matchLabels:
        os: ${GOOS}
        arch: ${GOARCH}
EOF
done
mv "${parts}/foo.yaml" "${folder}/foo.yaml"
echo "Wrote $# archives and foo.yaml to ${folder}. Upload the archives to ${url}"
