#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Fills the directory $1 for the commands of a document: with a clone of the repository in the
# working directory, a home directory and kubectl. Uncommitted changes become a commit of the
# clone, because documents contain commands that refuse them.
#
# Prints the variables of the caller that the network and the go command need.

set -o errexit -o nounset -o pipefail

copy=$1/sample-controller
mkdir -p "$1/run" "$1/tmp" "$1/path" "$1/home/.config/go/telemetry"
# Otherwise, the go command leaves a process that writes to the home directory after its removal.
echo off >"$1/home/.config/go/telemetry/mode"

git clone --quiet --no-hardlinks --no-checkout . "${copy}" || {
  echo "the documents run in a clone of the tree, so it must be a git repository of yours with a commit" >&2
  exit 1
}
git --git-dir="${copy}/.git" --work-tree=. read-tree HEAD
git --git-dir="${copy}/.git" --work-tree=. add --all

# The documents' make targets rebuild programs that are out of date.
mkdir "${copy}/bin"
for program in bin/devcluster bin/sample-controller bin/kubectl-foo; do
  if [[ -e "${program}" ]]; then
    cp -p "${program}" "${copy}/bin"
  fi
done
printf '#!/usr/bin/env bash\nexec %q kubectl "$@"\n' "${copy}/bin/devcluster" >"$1/path/kubectl"
chmod +x "$1/path/kubectl"

for name in "${!GO@}" USER LOGNAME LANG LC_ALL TZ CC CGO_ENABLED SSL_CERT_FILE SSL_CERT_DIR \
  HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
  if [[ -n "${!name+set}" && "${name}" != GO_TEST_FLAGS ]]; then
    echo "${name}=${!name}"
  fi
done
# Their defaults depend on HOME, which differs.
for name in GOENV GOPATH GOCACHE GOMODCACHE; do
  echo "${name}=$(go env "${name}")"
done

cd "${copy}"
git diff --cached --quiet ||
  git -c user.name=docs -c user.email=docs@localhost commit --quiet --message="Uncommitted changes"
git reset --quiet --hard
