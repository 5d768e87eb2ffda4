#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Builds what a release carries, into _output/release, and lists it. It publishes nothing.
#
#   hack/release.sh VERSION IMAGE
#
# VERSION is the tag of the commit that is checked out, such as v1.2.3, and the top entry of CHANGELOG.md.
# IMAGE is the image's name with its registry. VERSION takes the place of a tag in it. URL is where the
# archives of the plugin will be, as for tools/kubectl-foo/krew.sh.
#
# It needs the programs bin/apidiff and bin/devcluster, and the network for the tool that writes SBOMs.

set -o errexit -o nounset -o pipefail
unset CDPATH

fail() {
  echo "release: $*" >&2
  exit 1
}

if [[ $# -ne 2 || ! "$1" =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "usage: $0 VERSION IMAGE, with a VERSION such as v1.2.3" >&2
  exit 2
fi
readonly version="$1" sboms=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0 out=_output/release
name="${2%@*}"
# A colon before the last slash belongs to the registry's port.
if [[ "${name##*/}" == *:* ]]; then
  name="${name%:*}"
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."

entry="$(sed -n '/^## /{s/^## //p;q;}' CHANGELOG.md)"
if [[ "${entry}" != "${version} ("* ]]; then
  fail "the top entry of CHANGELOG.md is \"${entry}\", not ${version}: see step 2 of docs/releasing.md"
fi
if [[ -n "$(git status --porcelain)" ]]; then
  fail "the tree has changes: commit or remove them, because nobody else could build the same"
fi
if [[ "$(git rev-parse --verify --quiet "refs/tags/${version}^{commit}")" != "$(git rev-parse HEAD)" ]]; then
  fail "the tag ${version} is not at this commit: run git tag -a ${version} -m ${version}. The programs contain it"
fi

rm -rf "${out}"
image="$(hack/image.sh "${name}:${version}" linux/amd64,linux/arm64 "${out}/image" | awk 'NR == 1 { print $1 }')"
for program in "${out}"/image/linux_*/sample-controller; do
  platform="$(basename "$(dirname "${program}")")"
  go run "${sboms}" bin -json -std -output="${out}/sample-controller_${platform}.cdx.json" "${program}"
done
hack/install-yaml.sh "${image}" "${out}/install.yaml" >&2

# As "helm package --version --app-version" would write it.
cp -R artifacts/chart "${out}/sample-controller"
sed -e "s/^version: .*/version: ${version#v}/" -e "s/^appVersion: .*/appVersion: ${version}/" artifacts/chart/Chart.yaml \
  >"${out}/sample-controller/Chart.yaml"
tar -czf "${out}/sample-controller-${version#v}.tgz" -C "${out}" sample-controller
rm -r "${out:?}/sample-controller"

if [[ -d tools/kubectl-foo ]]; then
  tools/kubectl-foo/krew.sh "${version}" "${URL:-}" "${out}" linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 >&2
fi

# The second of the releases in CHANGELOG.md: the first is this one.
before="$(sed -n -E 's/^## v[^ ]+ \(([0-9a-f]{7,40})\).*$/\1/p' CHANGELOG.md | sed -n 2p)"
api="There is no earlier release to compare its API with."
if [[ -n "${before}" ]]; then
  hack/api.sh "${before}" >"${out}/api-changes.txt"
  api="Since ${before}, $(awk '
    /^Incompatible changes:/ { at = 1 }
    /^Compatible changes:/ { at = 2 }
    /^- / { count[at]++ }
    END { printf "%d incompatible and %d compatible changes", count[1], count[2] }' "${out}/api-changes.txt"): api-changes.txt."
fi

sha256=(sha256sum)
command -v sha256sum >/dev/null || sha256=(shasum -a 256)
(cd "${out}" && find . -maxdepth 1 -type f | LC_ALL=C sort | sed 's|^\./||' | xargs "${sha256[@]}") >"${out}.sums"
mv "${out}.sums" "${out}/SHA256SUMS"

echo "${version} is commit $(git rev-parse HEAD), built with $(go env GOVERSION)."
echo "Image: ${image}"
echo "Library: $(go list -m) ${version}. ${api}"
echo "Files in ${out}, with the sums of SHA256SUMS:"
cat "${out}/SHA256SUMS"
