# shellcheck shell=bash
#
# What update-codegen.sh and verify-codegen.sh share: generating everything
# from the types under pkg/apis into a copy of the sources, away from the tree.
# Generating beside the tree means that a generator's error leaves the tree as
# it was, and that verifying never touches it.

# codegen::outputs DIR lists the generated files below DIR, sorted: everything
# under pkg/generated, and by name what lives among hand-written files.
codegen::outputs() {
  (
    cd "$1"
    local places=() place
    for place in pkg/generated pkg/apis artifacts/crd; do
      [[ -d "${place}" ]] && places+=("${place}")
    done
    find "${places[@]:-.}" -type f \( -path 'pkg/generated/*' -o \
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
  local root=$1
  shift
  command -v go >/dev/null || codegen::fail "go is not on the PATH: install Go, then try again"
  CODEGEN_TOOLS=${root}/hack/tools/go.mod
  CODEGEN_COPY=$(mktemp -d)
  trap 'rm -rf "${CODEGEN_COPY}"' EXIT
  codegen::copy_sources "${root}" "${CODEGEN_COPY}"
  (codegen::generate "${CODEGEN_COPY}")
  "$@" "${CODEGEN_COPY}"
}

# codegen::install ROOT COPY replaces ROOT's generated files by COPY's.
codegen::install() {
  local root=$1 copy=$2 file
  while IFS= read -r file; do
    rm -f "${root}/${file}"
  done < <(codegen::outputs "${root}")
  codegen::outputs "${copy}" | codegen::copy_listed "${copy}" "${root}"
  find "${root}/pkg/generated" -type d -empty -delete
}

# codegen::compare ROOT COPY prints how ROOT's generated files differ from
# COPY's, new and missing ones included, and exits 1 if they do.
codegen::compare() {
  local root=$1 copy=$2 expected actual
  expected=${copy}/.verify/generated actual=${copy}/.verify/tree
  mkdir -p "${expected}" "${actual}"
  codegen::outputs "${copy}" | codegen::copy_listed "${copy}" "${expected}"
  codegen::outputs "${root}" | codegen::copy_listed "${root}" "${actual}"
  # git's diff, because git is there; it exits 1 on a difference.
  (cd "${copy}/.verify" && git --no-pager diff --no-index --no-color --src-prefix= --dst-prefix= -- tree generated) ||
    codegen::fail "the generated code above differs from what pkg/apis makes ('-' is the tree): run hack/update-codegen.sh"
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

# codegen::kinds DIR prints the types in DIR that ask for a client.
codegen::kinds() {
  awk '/^\/\/ \+genclient$/ { wanted = 1 } wanted && /^type / { print $2; wanted = 0 }' "$1"/*.go
}

# codegen::expect_kinds DIR fails unless the API in DIR has a kind, and each
# kind has its apply configuration, client, fake, lister, informer and CRD.
codegen::expect_kinds() {
  local api=${1#pkg/apis/} kinds kind file
  kinds=$(codegen::kinds "$1")
  [[ -n "${kinds}" ]] || codegen::fail "$1: no type asks for a client: mark one with // +genclient"
  for kind in ${kinds}; do
    file=$(tr '[:upper:]' '[:lower:]' <<<"${kind}").go
    codegen::expect \
      "pkg/generated/applyconfiguration/${api}/${file}" \
      "pkg/generated/clientset/versioned/typed/${api}/${file}" \
      "pkg/generated/clientset/versioned/typed/${api}/fake/fake_${file}" \
      "pkg/generated/listers/${api}/${file}" \
      "pkg/generated/informers/externalversions/${api}/${file}"
    grep -qsx "    kind: ${kind}" artifacts/crd/*_*.yaml ||
      codegen::fail "$1: no CustomResourceDefinition was made for kind ${kind}: is +kubebuilder:object:root=true missing?"
  done
}

# codegen::generate COPY makes everything in a copy of the sources. The
# generators' order is that of their needs: the OpenAPI definitions compile
# only with the deepcopy functions, and the apply configurations need the schema.
codegen::generate() {
  cd "$1"
  export GOFLAGS=-mod=readonly GOWORK=off
  local module generated dir header=(--go-header-file hack/boilerplate.go.txt)
  module=$(go list -m)
  generated=${module}/pkg/generated

  # Every folder pkg/apis/GROUP/VERSION is an API to generate for.
  local dirs=() packages=() inputs=()
  for dir in pkg/apis/*/v[0-9]*; do
    [[ -d "${dir}" ]] || codegen::fail "no API found: expected folders pkg/apis/GROUP/VERSION"
    dirs+=("${dir}")
    packages+=("${module}/${dir}")
    inputs+=(--input "${dir#pkg/apis/}")
  done

  echo "Generating deepcopy and register functions"
  codegen::run deepcopy-gen "${header[@]}" --output-file zz_generated.deepcopy.go "${packages[@]}"
  codegen::run register-gen "${header[@]}" --output-file zz_generated.register.go "${packages[@]}"
  for dir in "${dirs[@]}"; do
    codegen::expect "${dir}"/zz_generated.{deepcopy,register}.go
  done

  echo "Generating OpenAPI definitions and their schema"
  codegen::openapi "${header[@]}" --output-pkg "${generated}/openapi" "${packages[@]}"

  echo "Generating apply configurations, clientset, listers and informers"
  codegen::run applyconfiguration-gen "${header[@]}" \
    --output-dir pkg/generated/applyconfiguration --output-pkg "${generated}/applyconfiguration" \
    --openapi-schema pkg/generated/openapi/schema.json "${packages[@]}"
  codegen::run client-gen "${header[@]}" --clientset-name versioned \
    --output-dir pkg/generated/clientset --output-pkg "${generated}/clientset" \
    --apply-configuration-package "${generated}/applyconfiguration" \
    --input-base "${module}/pkg/apis" "${inputs[@]}"
  codegen::run lister-gen "${header[@]}" \
    --output-dir pkg/generated/listers --output-pkg "${generated}/listers" "${packages[@]}"
  codegen::run informer-gen "${header[@]}" \
    --output-dir pkg/generated/informers --output-pkg "${generated}/informers" \
    --versioned-clientset-package "${generated}/clientset/versioned" \
    --listers-package "${generated}/listers" "${packages[@]}"

  echo "Generating CustomResourceDefinitions"
  codegen::run controller-gen crd 'paths=./pkg/apis/...' output:crd:artifacts:config=artifacts/crd

  for dir in "${dirs[@]}"; do
    codegen::expect_kinds "${dir}"
  done
  echo "Compiling what was generated"
  go build ./pkg/...
}

# codegen::openapi ARGS... makes the OpenAPI definitions of the API and of the
# library types that it uses, then the schema that applyconfiguration-gen reads.
codegen::openapi() {
  local library=(
    k8s.io/apimachinery/pkg/api/resource
    k8s.io/apimachinery/pkg/apis/meta/v1
    k8s.io/apimachinery/pkg/runtime
    k8s.io/apimachinery/pkg/version
  )
  # Read-only: openapi-gen would else write model names into the module cache.
  local readonly=("${library[@]}" k8s.io/apimachinery/pkg/types k8s.io/apimachinery/pkg/util/intstr time)
  codegen::run openapi-gen --output-dir pkg/generated/openapi --output-file zz_generated.openapi.go \
    --output-model-name-file zz_generated.model_name.go --report-filename /dev/null \
    "${readonly[@]/#/--readonly-pkg=}" "$@" "${library[@]}"
  codegen::expect pkg/generated/openapi/zz_generated.openapi.go
  # A file, not <(...): process substitution would hide this program's error.
  go run ./hack/models-schema >pkg/generated/openapi/schema.json
  codegen::expect pkg/generated/openapi/schema.json
}
