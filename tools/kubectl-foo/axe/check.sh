#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Runs check.js with the packages in package-lock.json. On Debian, as root, it installs Chromium, Node.js and npm
# if they are missing. If it can't, it fails.

set -o errexit -o nounset -o pipefail
unset CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")"
here=$(pwd -P)
root=$(cd ../../.. && pwd -P)
modules=${root}/_output/axe

# need PACKAGE COMMAND... prints the path of the first command that exists, and else installs the package.
need() {
  local package=$1 name
  shift
  for name in "$@"; do
    command -v "${name}" && return
  done
  if command -v apt-get >/dev/null && [[ "$(id -u)" -eq 0 ]]; then
    echo "Installing ${package}" >&2
    export DEBIAN_FRONTEND=noninteractive
    {
      timeout 300 apt-get install -qq -y --no-install-recommends "${package}" ||
        { timeout 120 apt-get update -qq && timeout 600 apt-get install -qq -y --no-install-recommends "${package}"; }
    } </dev/null >&2 || true
    command -v "$1" && return
  fi
  echo "This check needs ${package}, which could not be installed: install it, so that $1 is in PATH" >&2
  return 1
}

chromium=$(need chromium chromium chromium-browser google-chrome)
node=$(need nodejs node)
npm=$(need npm npm)

# npm writes the last of these files when all packages are there.
if ! cmp -s package-lock.json "${modules}/package-lock.json" || [[ ! -e "${modules}/node_modules/.package-lock.json" ]]; then
  mkdir -p "${modules}"
  cp package.json package-lock.json "${modules}"
  (cd "${modules}" && "${npm}" ci --ignore-scripts --no-audit --no-fund) || {
    echo "npm could not install the packages in ${here}/package-lock.json" >&2
    exit 1
  }
fi
NODE_PATH=${modules}/node_modules "${node}" check.js "${root}/bin/kubectl-foo" "${chromium}" \
  "${root}/tools/internal/timeline/testdata/life.log"
