#!/usr/bin/env bash

# SPDX-License-Identifier: Apache-2.0

# Runs one of the checks below, and prints its result and duration.
#
#   hack/check.sh NAME [COMMAND...]
#
# The Makefile calls this script after building the programs in bin/ that the check needs.
# GO_TEST_FLAGS is passed to each go test. A COMMAND replaces the check, as in the files
# targets.mk.
#
# All checks compile with the flags of the environment, as hack/build.sh does, so that they
# share the build cache. Only tests with the race detector compile the packages again.

set -o errexit -o nounset -o pipefail
unset CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$(pwd -P)
export GOWORK=off
# Otherwise, a quarter of the time goes to garbage collection. Processes use a few times as
# much memory.
export GOGC=${GOGC:-400}
read -r -a go_test_flags <<<"${GO_TEST_FLAGS:-}"

# files ARGS... prints the hand-written files that find's ARGS select, null-terminated.
files() {
  find . \( -path ./.git -o -path ./bin -o -path ./_output -o -path ./pkg/generated -o -name testdata \) -prune -o \
    -type f "$@" -print0
}

# in_modules COMMAND... runs COMMAND in each module that has Go code, and fails if COMMAND
# failed in any of them.
in_modules() {
  local module failed=0
  while IFS= read -r -d '' module; do
    module=$(dirname "${module}")
    if (cd "${module}" && go list ./... 2>&1) | grep -q '^go: warning: .* matched no packages'; then
      continue
    fi
    echo "--- ${module}"
    (cd "${module}" && "$@" </dev/null) || failed=1
  done < <(files -name go.mod)
  return "${failed}"
}

# go_test FLAGS PACKAGES... runs go test with the user's flags, but without go vet, which is a
# separate check, and without cached results, because the go command does not notice that a test
# reads files of another module, or starts a program that does.
go_test() {
  go test -vet=off -count=1 ${go_test_flags[@]+"${go_test_flags[@]}"} "$@"
}

# Hand-written Go code is formatted with gofmt -s.
check_fmt() {
  local wrong
  wrong=$(files -name '*.go' ! -name 'zz_generated.*' | xargs -0 gofmt -s -l)
  if [[ -n "${wrong}" ]]; then
    printf 'not formatted with gofmt -s (run make fmt):\n%s\n' "${wrong}"
    return 1
  fi
}

# go.mod and go.sum are tidy, and all modules name the same Go release.
check_tidy() {
  local module release failed=0
  release=$(grep -E '^(go|toolchain) ' go.mod)
  while IFS= read -r -d '' module; do
    (cd "$(dirname "${module}")" && go mod tidy -diff) || failed=1
    if [[ "$(grep -E '^(go|toolchain) ' "${module}")" != "${release}" ]]; then
      echo "${module}: the lines go and toolchain must be the same as in ./go.mod: ${release//$'\n'/, }"
      failed=1
    fi
  done < <(files -name go.mod)
  if [[ "${failed}" -ne 0 ]]; then
    echo "run go mod tidy in these modules, and go mod edit -toolchain=... if the release differs"
  fi
  return "${failed}"
}

check_vet() {
  in_modules go vet ./...
}

check_lint() {
  if [[ -d .github ]]; then
    bin/actionlint .github/workflows/*.yml
  fi
  # For devcluster, golangci-lint analyzes all of Kubernetes. The limit halves its memory at
  # almost no cost in time.
  GOMEMLIMIT=2GiB in_modules "${root}/bin/golangci-lint" run ./...
}

# The unit tests, which need neither a cluster nor minutes. With RACE_PART=n/3, of the root module only the n-th third of the
# packages for the race detector: for .ci/run, where the README's go test ./... runs them all, without it.
check_unit() {
  local race=-race
  if ! command -v "$(go env CC)" >/dev/null; then
    echo "no C compiler ($(go env CC)): running without the race detector"
    race=
  fi
  KUBE_CACHE_MUTATION_DETECTOR=true in_modules unit_tests "${race}"
}

# unit_tests RACE tests a module's packages, except those that have their own check.
unit_tests() {
  local race=$1 packages package folder failed=0 sequential=() concurrent=() i
  packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./...) || return
  while read -r package folder; do
    case "${package}" in
      */test/oracle | */test/mutants) ;; # they need no cluster themselves
      '' | */test/* | */hack/codegen | */tools/*/test) continue ;;
      */tools/kubectl-foo | */tools/kubectl-foo/*) continue ;; # make test-kubectl-foo
      */tools/newproject) continue ;;                          # make test-new-project-plans
    esac
    # Without goroutines and locks, in the package or its tests, there is no race to detect.
    if [[ -n "${race}" ]] && grep -qsE '\bgo (func\b|[[:alnum:]_.]+\()|\.Go\(|"sync(/atomic)?"|\.Parallel\(|\.Start(WithContext)?\(|\.Run\(ctx' "${folder}"/*.go; then
      concurrent+=("${package}")
    else
      sequential+=("${package}")
    fi
  done <<<"${packages}"
  if [[ -n "${RACE_PART:-}" && "${PWD}" == "${root}" ]]; then
    sequential=()
    for i in "${!concurrent[@]}"; do
      ((i % ${RACE_PART#*/} == ${RACE_PART%/*} - 1)) || unset "concurrent[i]"
    done
  fi
  if [[ ${#sequential[@]} -gt 0 ]]; then
    go_test -timeout=30m "${sequential[@]}" || failed=1
  fi
  if [[ ${#concurrent[@]} -gt 0 ]]; then
    # The race detector needs cgo. What the tests themselves compile has the flags of all other checks,
    # or every package would be compiled once more. A busy machine is slow with the race detector.
    local as_elsewhere="env CGO_ENABLED=${CGO_ENABLED:-}"
    CGO_ENABLED=1 go_test -timeout=30m "${race}" -exec="${as_elsewhere}" "${concurrent[@]}" || failed=1
  fi
  return "${failed}"
}

# The admission policy, with the API server's code for policies, and without the race detector,
# which would compile that code again.
check_policy() {
  (cd test/artifacts/policy && go_test .)
}

# The known vulnerabilities that the program reaches. This is not part of test-all, because the
# database is on the network. govulncheck exits with 3 if it finds any.
check_vulnerabilities() {
  local code=0
  GOBIN=${root}/bin go install golang.org/x/vuln/cmd/govulncheck@v1.9.0
  "${root}/bin/govulncheck" . || code=$?
  if ((code != 0 && code != 3)); then
    echo "unknown whether the program has known vulnerabilities: govulncheck could not reach its database"
  fi
  return "${code}"
}

check_verify-codegen() {
  hack/verify-codegen.sh
}

check_shellcheck() {
  local wrong
  wrong=$(files \( -name '*.sh' -o -path './.ci/run' \) | xargs -0 grep -lE '(^|[^#]* )cd "\$\(dirname' | xargs grep -L '^unset CDPATH$') || true
  if [[ -n "${wrong}" ]]; then
    printf 'cd prints the directory, and may find another one, unless the script has the line unset CDPATH:\n%s\n' "${wrong}"
    return 1
  fi
  if ! command -v shellcheck >/dev/null; then
    echo "skipped: shellcheck is not installed"
    return
  fi
  files \( -name '*.sh' -o -path './.ci/run' \) | xargs -0 shellcheck -x
}

name=${1:-}
if [[ $# -le 1 ]] && ! declare -F "check_${name}" >/dev/null; then
  echo "usage: $0 NAME [COMMAND...]; without a COMMAND, one of:$(declare -F | sed -n 's/^declare -f check_/ /p' | tr -d '\n')" >&2
  exit 2
fi
readonly name
say_result() {
  local status=$?
  if [[ "${status}" -eq 0 ]]; then
    echo "==> ${name}: passed in ${SECONDS} s"
  else
    echo "==> ${name}: FAILED after ${SECONDS} s" >&2
  fi
}
trap say_result EXIT
# Without these, a signal would end the script with the previous command's status.
trap 'exit 130' INT
trap 'exit 143' TERM
echo "==> ${name}"
if [[ $# -gt 1 ]]; then
  shift
  "$@"
else
  "check_${name}"
fi
