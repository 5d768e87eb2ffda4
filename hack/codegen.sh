# shellcheck shell=bash
#
# What update-codegen.sh and verify-codegen.sh share: generating everything
# from the types under pkg/apis into a copy of the sources, away from the tree.
# Generating beside the tree means that a generator's error leaves the tree as
# it was, and that verifying never touches it.
#
# Works with bash 3.2, which macOS has: there, errexit does not see that a
# (subshell) failed, so nothing here depends on that.

# codegen::outputs DIR lists the generated files below DIR, sorted: everything
# under pkg/generated, and by name what lives among hand-written files.
codegen::outputs() {
  (
    cd "$1" || exit
    local places=() place
    for place in pkg/generated pkg/apis artifacts/crd; do
      [[ -d "${place}" ]] && places+=("${place}")
    done
    find "${places[@]:-.}" ! -type d \( -path 'pkg/generated/*' -o \
      -path 'pkg/apis/*/zz_generated.*.go' -o -path 'artifacts/crd/*_*.yaml' \) | LC_ALL=C sort
  )
}

codegen::fail() {
  echo "codegen: $*" >&2
  exit 1
}

# codegen::with_generated_copy ROOT COMMAND... generates into a copy of ROOT,
# in a temporary folder, and calls COMMAND with the copy's path as last argument.
codegen::with_generated_copy() {
  local root=$1 tool
  shift
  for tool in go git; do
    command -v "${tool}" >/dev/null || codegen::fail "${tool} is not on the PATH: install it, then try again"
  done
  CODEGEN_TOOLS=${root}/hack/tools/go.mod
  CODEGEN_COPY=$(mktemp -d)
  trap 'cd / && rm -rf "${CODEGEN_COPY}"' EXIT
  # Absolute, for TMPDIR may be relative.
  CODEGEN_COPY=$(cd "${CODEGEN_COPY}" && pwd -P)
  codegen::copy_sources "${root}" "${CODEGEN_COPY}"
  codegen::generate "${CODEGEN_COPY}"
  "$@" "${CODEGEN_COPY}"
}

# codegen::install ROOT COPY replaces ROOT's generated files by COPY's.
codegen::install() {
  local root=$1 copy=$2 file
  # Half of the files old and half new would not compile: finish what is begun.
  trap '' HUP INT TERM
  codegen::outputs "${copy}" | codegen::copy_listed "${copy}" "${root}"
  codegen::outputs "${root}" | while IFS= read -r file; do
    [[ -e "${copy}/${file}" ]] || rm -f "${root}/${file}"
  done
  find "${root}/pkg/generated" -type d -empty -delete
}

# codegen::compare ROOT COPY prints how ROOT's generated files differ from
# COPY's, new and missing ones included, and exits 1 if they do.
codegen::compare() {
  local root=$1 copy=$2 expected actual status=0
  expected=${copy}/.verify/generated actual=${copy}/.verify/tree
  mkdir -p "${expected}" "${actual}"
  codegen::outputs "${copy}" | codegen::copy_listed "${copy}" "${expected}"
  codegen::outputs "${root}" | codegen::copy_listed "${root}" "${actual}"
  cd "${copy}/.verify" || exit
  # git's diff, because git is there.
  git --no-pager diff --no-index --no-ext-diff --no-color --src-prefix= --dst-prefix= -- tree generated || status=$?
  case ${status} in
    0) ;;
    1) codegen::fail "the generated code above differs from what pkg/apis makes ('-' is the tree): run hack/update-codegen.sh" ;;
    *) codegen::fail "git diff ended with status ${status}" ;;
  esac
}

# codegen::copy_listed FROM TO copies the files named on standard input.
codegen::copy_listed() {
  local file
  while IFS= read -r file; do
    mkdir -p "$2/$(dirname "${file}")"
    cp "$1/${file}" "$2/${file}"
  done
}

# codegen::copy_sources ROOT COPY copies what the generators read.
codegen::copy_sources() {
  local root=$1 copy=$2
  mkdir -p "${copy}/pkg" "${copy}/hack"
  cp "${root}/go.mod" "${root}/go.sum" "${copy}/"
  cp -R "${root}/pkg/apis" "${copy}/pkg/"
  cp -R "${root}/hack/models-schema" "${root}/hack/boilerplate.go.txt" "${copy}/hack/"
  find "${copy}/pkg/apis" -name 'zz_generated.*.go' -delete
}

# codegen::run TOOL ARGS... runs a generator at the version that
# hack/tools/go.mod pins. The binary stays in Go's build cache; nothing is
# installed into GOBIN.
codegen::run() {
  go tool -modfile="${CODEGEN_TOOLS}" "$@" || codegen::fail "$1 ended with status $?"
}

# codegen::expect FILE... fails unless each file exists and is not empty: a
# generator that finds nothing to do ends with 0.
codegen::expect() {
  local file
  for file in "$@"; do
    [[ -s "${file}" ]] ||
      codegen::fail "${file} was expected and not made: is a marker (+genclient, +groupName, +k8s:deepcopy-gen, +kubebuilder:...) missing in pkg/apis?"
  done
}

# codegen::kinds DIR prints the types in DIR that ask for a client, and fails
# if there is none.
codegen::kinds() {
  local kinds
  kinds=$(awk '/^\/\/ ?\+genclient *$/ { wanted = 1 } wanted && /^type / { print $2; wanted = 0 }' "$1"/*.go)
  [[ -n "${kinds}" ]] || codegen::fail "$1: no type asks for a client: mark one with // +genclient"
  echo "${kinds}"
}

# codegen::expect_crd API KIND fails unless a CustomResourceDefinition serves
# KIND in the version of API (GROUP/VERSION).
codegen::expect_crd() {
  local file
  for file in artifacts/crd/*_*.yaml; do
    if grep -qsx "    kind: $2" "${file}" && grep -qx "    name: ${1#*/}" "${file}"; then
      return
    fi
  done
  codegen::fail "pkg/apis/$1: no CustomResourceDefinition was made for kind $2: is +groupName missing in doc.go?"
}

# codegen::expect_openapi API KIND fails unless KIND has its OpenAPI definition.
codegen::expect_openapi() {
  grep -q "_${1//[^a-zA-Z0-9]/_}_$2(" pkg/generated/openapi/zz_generated.openapi.go ||
    codegen::fail "pkg/apis/$1: no OpenAPI definition was made for kind $2: is +k8s:openapi-gen=true missing in doc.go?"
}

# codegen::expect_clients API KIND fails unless KIND has its apply
# configuration, client, fake, lister and informer.
codegen::expect_clients() {
  local file
  file=$(tr '[:upper:]' '[:lower:]' <<<"$2").go
  codegen::expect \
    "pkg/generated/applyconfiguration/$1/${file}" \
    "pkg/generated/clientset/versioned/typed/$1/${file}" \
    "pkg/generated/clientset/versioned/typed/$1/fake/fake_${file}" \
    "pkg/generated/listers/$1/${file}" \
    "pkg/generated/informers/externalversions/$1/${file}"
}

# codegen::expect_all EXPECT DIR... calls EXPECT for each kind in each DIR.
codegen::expect_all() {
  local expect=$1 dir kinds kind
  shift
  for dir in "$@"; do
    kinds=$(codegen::kinds "${dir}")
    for kind in ${kinds}; do
      "${expect}" "${dir#pkg/apis/}" "${kind}"
    done
  done
}

# codegen::generate COPY makes everything in a copy of the sources, cheapest
# first where the order is free. It is not free where the OpenAPI definitions
# compile only with the deepcopy functions, and the apply configurations need
# the schema.
codegen::generate() {
  cd "$1" || exit
  # Whatever the user builds for, generators run here, on the copy's go.mod. The
  # flags are those of hack/build.sh, so that both use the same build cache,
  # wherever the copy is.
  export GOFLAGS="-mod=readonly -trimpath" CGO_ENABLED=0 GOWORK=off GOOS GOARCH
  GOOS=$(go env GOHOSTOS) GOARCH=$(go env GOHOSTARCH)
  local module dir header=(--go-header-file hack/boilerplate.go.txt)
  module=$(go list -m)

  # Every folder pkg/apis/GROUP/VERSION is an API to generate for.
  local dirs=() packages
  for dir in pkg/apis/*/v[0-9]*; do
    [[ -d "${dir}" ]] || codegen::fail "no API found: expected folders pkg/apis/GROUP/VERSION"
    dirs+=("${dir}")
  done
  packages=("${dirs[@]/#/${module}/}")

  echo "Generating CustomResourceDefinitions"
  codegen::run controller-gen crd 'paths=./pkg/apis/...' output:crd:artifacts:config=artifacts/crd
  codegen::expect_all codegen::expect_crd "${dirs[@]}"

  echo "Generating deepcopy and register functions"
  codegen::run deepcopy-gen "${header[@]}" --output-file zz_generated.deepcopy.go "${packages[@]}"
  codegen::run register-gen "${header[@]}" --output-file zz_generated.register.go "${packages[@]}"
  for dir in "${dirs[@]}"; do
    codegen::expect "${dir}"/zz_generated.{deepcopy,register}.go
  done

  echo "Generating OpenAPI definitions and their schema"
  codegen::openapi "${module}/pkg/generated" "${packages[@]}"
  codegen::expect_all codegen::expect_openapi "${dirs[@]}"
  # A file, not <(...): process substitution would hide this program's error.
  go run ./hack/models-schema >pkg/generated/openapi/schema.json ||
    codegen::fail "hack/models-schema ended with status $?"
  codegen::expect pkg/generated/openapi/schema.json

  echo "Generating apply configurations, clientset, listers and informers"
  codegen::clients "${module}" "${dirs[@]}"
  codegen::expect_all codegen::expect_clients "${dirs[@]}"

  echo "Compiling what was generated"
  go build ./pkg/... || codegen::fail "what was generated does not compile"
}

# codegen::openapi GENERATED PACKAGE... makes the OpenAPI definitions of the
# API and of the library types that it uses.
codegen::openapi() {
  local generated=$1
  shift
  local library=(
    k8s.io/apimachinery/pkg/api/resource
    k8s.io/apimachinery/pkg/apis/meta/v1
    k8s.io/apimachinery/pkg/runtime
    k8s.io/apimachinery/pkg/version
  )
  # Read-only: openapi-gen would else write model names into the module cache.
  local keep=("${library[@]}" k8s.io/apimachinery/pkg/types k8s.io/apimachinery/pkg/util/intstr time)
  codegen::run openapi-gen --go-header-file hack/boilerplate.go.txt \
    --output-dir pkg/generated/openapi --output-pkg "${generated}/openapi" \
    --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
    --report-filename /dev/null "${keep[@]/#/--readonly-pkg=}" "$@" "${library[@]}"
  codegen::expect pkg/generated/openapi/zz_generated.openapi.go
}

# codegen::plurals DIR... prints KIND:PLURAL for each kind whose marker
# +kubebuilder:resource has a path: the clients then call it as the definition
# does. The plural has the kind's capitals as far as both are alike: httpmice
# of HTTPMouse is HTTPMice.
codegen::plurals() {
  local dir
  for dir in "$@"; do
    awk '
      /^\/\/ ?\+genclient *$/ { wanted = 1; plural = "" }
      wanted && /^\/\/ ?\+kubebuilder:resource:(.*,)?path=/ {
        plural = $0
        sub(/^.*[:,]path="?/, "", plural)
        sub(/[",].*$/, "", plural)
      }
      wanted && /^type / {
        alike = 0
        while (alike < length(plural) && substr(plural, alike + 1, 1) == tolower(substr($2, alike + 1, 1))) alike++
        if (plural != "") print $2 ":" substr($2, 1, alike) substr(plural, alike + 1)
        wanted = 0
      }' "${dir}"/*.go
  done
}

# codegen::clients MODULE DIR... makes apply configurations, clientset, listers
# and informers for the APIs in the DIRs (pkg/apis/GROUP/VERSION).
codegen::clients() {
  local module=$1 out=pkg/generated header=(--go-header-file hack/boilerplate.go.txt)
  local generated=${module}/${out}
  shift
  local packages=("${@/#/${module}/}") inputs=("${@#pkg/apis/}") exception plurals=()
  for exception in $(codegen::plurals "$@" | LC_ALL=C sort -u); do
    plurals+=(--plural-exceptions "${exception}")
  done
  codegen::run applyconfiguration-gen "${header[@]}" \
    --output-dir "${out}/applyconfiguration" --output-pkg "${generated}/applyconfiguration" \
    --openapi-schema "${out}/openapi/schema.json" "${packages[@]}"
  codegen::run client-gen "${header[@]}" --clientset-name versioned ${plurals[@]+"${plurals[@]}"} \
    --output-dir "${out}/clientset" --output-pkg "${generated}/clientset" \
    --apply-configuration-package "${generated}/applyconfiguration" \
    --input-base "${module}/pkg/apis" "${inputs[@]/#/--input=}"
  codegen::run lister-gen "${header[@]}" ${plurals[@]+"${plurals[@]}"} \
    --output-dir "${out}/listers" --output-pkg "${generated}/listers" "${packages[@]}"
  codegen::run informer-gen "${header[@]}" ${plurals[@]+"${plurals[@]}"} \
    --output-dir "${out}/informers" --output-pkg "${generated}/informers" \
    --versioned-clientset-package "${generated}/clientset/versioned" \
    --listers-package "${generated}/listers" "${packages[@]}"
}
