# shellcheck shell=bash
#
# Functions of update-codegen.sh and verify-codegen.sh. They run the generators through
# kube_codegen.sh of k8s.io/code-generator, at the version that hack/codegen/go.mod pins.
# This file adds what that script lacks:
#
# - It generates into a copy of the sources. A generator's error leaves the tree
#   unchanged, and verifying never touches the tree.
# - The copy has its own GOBIN and TMPDIR, so nothing is installed.
# - Versions of one kind may differ only as declared, because there is no conversion.
# - A missing marker is an error. kube_codegen.sh generates code only for the markers that
#   it finds, and succeeds if it finds none.
# - It also generates the CustomResourceDefinitions, their list for kustomize, a reference
#   of each API version, and the schema that fake.NewClientset needs to answer an Apply.
#
# Limitations of kube_codegen.sh:
#
# - The generators' dependencies come from code-generator's go.mod. Only those of controller-gen
#   and crd-ref-docs are in hack/codegen/go.mod.
# - Every run links all generators again, including those for markers that the types do not
#   have (conversions, defaults, validations). This takes a few seconds.
# - It ignores the status of the commands that search for markers and clean up (process
#   substitutions). codegen::check_made finds the missing files.
#
# The functions work with bash 3.2, the version of macOS. Its errexit ignores the failure
# of a (subshell). Therefore a failed build of a generator is an error only when
# kube_codegen.sh calls the generator. The empty GOBIN ensures that error.

# codegen::outputs DIR lists the generated files below DIR, sorted: everything under
# pkg/generated, and the files with generated names among hand-written files.
codegen::outputs() {
  (
    cd "$1" || exit
    local places=() place
    for place in pkg/generated pkg/apis artifacts/crd artifacts/versions; do
      [[ -d "${place}" ]] && places+=("${place}")
    done
    find "${places[@]:-.}" ! -type d \( -path 'pkg/generated/*' -o \
      -path 'pkg/apis/*/zz_generated.*.go' -o -path 'pkg/apis/*/*/README.md' -o \
      -path 'artifacts/crd/*_*.yaml' -o -path 'artifacts/versions/*.yaml' -o \
      -path artifacts/crd/Kustomization \) | LC_ALL=C sort
  )
}

codegen::fail() {
  echo "codegen: $*" >&2
  exit 1
}

# codegen::with_generated_copy ROOT COMMAND... generates into a copy of ROOT, in a
# temporary directory, and calls COMMAND with the copy's path as last argument.
codegen::with_generated_copy() {
  local root=$1 tool
  shift
  for tool in go git; do
    command -v "${tool}" >/dev/null || codegen::fail "${tool} is not on the PATH: install it and try again"
  done
  CODEGEN_COPY=$(mktemp -d)
  trap 'cd / && rm -rf "${CODEGEN_COPY}"' EXIT
  # Make the path absolute, because TMPDIR may be relative.
  CODEGEN_COPY=$(cd "${CODEGEN_COPY}" && pwd -P)
  codegen::copy_sources "${root}" "${CODEGEN_COPY}"
  codegen::generate "${CODEGEN_COPY}"
  "$@" "${CODEGEN_COPY}"
}

# codegen::install ROOT COPY replaces ROOT's generated files with COPY's.
codegen::install() {
  local root=$1 copy=$2 file
  # Ignore signals, because a mixture of old and new files would not compile.
  trap '' HUP INT TERM
  codegen::outputs "${copy}" | codegen::copy_listed "${copy}" "${root}"
  codegen::outputs "${root}" | while IFS= read -r file; do
    [[ -e "${copy}/${file}" ]] || rm -f "${root}/${file}"
  done
  find "${root}/pkg/generated" -type d -empty -delete
}

# codegen::compare ROOT COPY prints the differences between ROOT's and COPY's generated files,
# including new and missing files, and exits with 1 if there are any.
codegen::compare() {
  local root=$1 copy=$2 expected actual status=0
  expected=${copy}/.verify/generated actual=${copy}/.verify/tree
  mkdir -p "${expected}" "${actual}"
  codegen::outputs "${copy}" | codegen::copy_listed "${copy}" "${expected}"
  codegen::outputs "${root}" | codegen::copy_listed "${root}" "${actual}"
  cd "${copy}/.verify" || exit
  # git diff, because its headers contain no times.
  git --no-pager diff --no-index --no-ext-diff --no-color --src-prefix= --dst-prefix= -- tree generated || status=$?
  case ${status} in
    0) ;;
    1) codegen::fail "the generated code is not up to date with pkg/apis; see the differences above ('-' is the tree), and run hack/update-codegen.sh" ;;
    *) codegen::fail "git diff ended with status ${status}" ;;
  esac
}

# codegen::copy_listed FROM TO copies the files whose paths are on standard input.
codegen::copy_listed() {
  local file
  while IFS= read -r file; do
    mkdir -p "$2/$(dirname "${file}")"
    cp "$1/${file}" "$2/${file}"
  done
}

# codegen::copy_sources ROOT COPY copies the files that the generators read.
codegen::copy_sources() {
  local root=$1 copy=$2
  mkdir -p "${copy}/pkg" "${copy}/hack/codegen" "${copy}/tools"
  cp "${root}/go.mod" "${root}/go.sum" "${copy}/"
  cp -R "${root}/pkg/apis" "${copy}/pkg/"
  cp -R "${root}/tools/migrate" "${copy}/tools/"
  cp -R "${root}/hack/models-schema" "${root}/hack/boilerplate.go.txt" "${copy}/hack/"
  cp -R "${root}/hack/codegen/"{go.mod,go.sum,reference.tpl} "${copy}/hack/codegen/"
  find "${copy}/pkg/apis" \( -name 'zz_generated.*.go' -o -path '*/v[0-9]*/README.md' \) -delete
}

# codegen::check_markers DIR fails unless the API in DIR has all markers. Generators skip
# an API without their marker.
codegen::check_markers() {
  local marker
  for marker in +groupName= +k8s:deepcopy-gen=package +k8s:openapi-gen=true +genclient; do
    grep -qE "^// ?\\${marker}" "$1"/*.go || codegen::fail "$1: no file has the marker // ${marker}"
  done
}

# codegen::kinds DIR prints each type in DIR with the marker +genclient: as KIND, or as
# KIND:PLURAL if +kubebuilder:resource has a path, so that the clients use the same plural
# as the CustomResourceDefinition. The plural gets the kind's capitals as far as both have
# the same letters: httpmice of HTTPMouse is HTTPMice.
codegen::kinds() {
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
      print $2 (plural == "" ? "" : ":" substr($2, 1, alike) substr(plural, alike + 1))
      wanted = 0
    }' "$1"/*.go
}

# codegen::check_made DIR fails unless all files for the API in DIR were generated,
# because a generator that finds nothing to do succeeds.
codegen::check_made() {
  local api=${1#pkg/apis/} kinds kind file
  for file in "$1"/{README.md,zz_generated.{deepcopy,register,model_name}.go} \
    pkg/generated/{applyconfiguration,clientset/versioned/typed,informers/externalversions,listers}/"${api}"; do
    [[ -s "${file}" ]] || codegen::fail "no generator wrote ${file}: check the markers in $1"
  done
  kinds=$(codegen::kinds "$1")
  for kind in ${kinds}; do
    codegen::has_crd "${kind%%:*}" "${api#*/}" ||
      codegen::fail "$1: no CustomResourceDefinition was made for kind ${kind%%:*}"
    grep -q "_${api//[^a-zA-Z0-9]/_}_${kind%%:*}(" pkg/generated/openapi/zz_generated.openapi.go ||
      codegen::fail "$1: no OpenAPI definition was made for kind ${kind%%:*}"
  done
}

# codegen::has_crd KIND VERSION reports whether a CustomResourceDefinition serves KIND in
# VERSION.
codegen::has_crd() {
  local file
  for file in artifacts/crd/*_*.yaml; do
    # The name is a version's first field, unless the version has printer columns.
    if grep -qsx "    kind: $1" "${file}" && grep -qxE "  [- ] name: $2" "${file}"; then
      return
    fi
  done
  return 1
}

# codegen::merge_versions gives a kind of two versions the fields of both in each, as
# pkg/apis/GROUP/versions.yaml declares. It fails if the versions differ in anything else,
# because the API server does not convert between them.
codegen::merge_versions() {
  go run -C tools/migrate . generate -root "${PWD}" "${PWD}/artifacts/crd" ||
    codegen::fail "the versions of a kind can't be served together, see above"
}

# codegen::write_kustomization lists the CustomResourceDefinitions for kustomize.
codegen::write_kustomization() {
  mkdir -p artifacts/crd # codegen::check_made reports it if there are none
  {
    cat <<'EOF'
# hack/update-codegen.sh writes this file. kustomize reads only files below its root, so a
# directory that overlays build on needs its own kustomization. It has no extension because
# "kubectl apply -f artifacts/crd" would read a kustomization.yaml as an object.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
EOF
    printf '%s\n' artifacts/crd/*_*.yaml | LC_ALL=C sort | sed 's|.*/|- |'
  } >artifacts/crd/Kustomization
}

# codegen::write_references DIR... writes the README.md of the API in each DIR. Its links
# lead to the documentation of the Kubernetes release in go.mod.
codegen::write_references() {
  local dir release
  release=$(go list -m -f '{{.Version}}' k8s.io/api | sed -E 's/^v0\.([0-9]+)\..*/1.\1/')
  echo "render: {kubernetesVersion: '${release}'}" >.codegen/reference.yaml
  for dir in "$@"; do
    go tool -modfile=hack/codegen/go.mod crd-ref-docs --renderer=markdown --templates-dir=hack/codegen \
      --config=.codegen/reference.yaml --source-path="./${dir}" --output-path="${dir}/README.md" --log-level=WARN ||
      codegen::fail "crd-ref-docs ended with status $?"
  done
}

# codegen::load_kube_codegen COPY sources kube_codegen.sh. From then on, the go command
# installs into COPY.
codegen::load_kube_codegen() {
  # The generators run on this machine, whatever the user's GOOS is, and use the copy's go.mod.
  # The flags are the same as in hack/build.sh, so that both use the same build cache, wherever
  # the copy is.
  export GOFLAGS="-mod=readonly -trimpath -ldflags=-w" CGO_ENABLED=0 GOWORK=off GOOS GOARCH
  GOOS=$(go env GOHOSTOS) GOARCH=$(go env GOHOSTARCH)
  export GOBIN=$1/.codegen/bin TMPDIR=$1/.codegen/tmp
  mkdir -p "${GOBIN}" "${TMPDIR}"
  local dir
  dir=$(cd "$1/hack/codegen" && go mod download k8s.io/code-generator && go list -m -f '{{.Dir}}' k8s.io/code-generator)
  # shellcheck source=/dev/null
  source "${dir}/kube_codegen.sh"
}

# codegen::generate COPY generates everything in a copy of the sources. The OpenAPI
# definitions compile only with the deepcopy functions, and the apply configurations need
# the schema. Apart from that, the steps that fail most often come first.
#
# This function relies on errexit to end at a kube::codegen function that fails. So it
# must not be called where errexit is off, as in "codegen::generate || ...".
codegen::generate() {
  cd "$1" || exit
  local module dir dirs=() plurals options=(--boilerplate hack/boilerplate.go.txt)
  local lint=(--lint-rules "known-tags-only,require-explicit-disablement")
  # Every directory pkg/apis/GROUP/VERSION is an API.
  for dir in pkg/apis/*/v[0-9]*; do
    [[ -d "${dir}" ]] || codegen::fail "no API found: expected directories pkg/apis/GROUP/VERSION"
    codegen::check_markers "${dir}"
    dirs+=("${dir}")
  done
  codegen::load_kube_codegen "$1"
  module=$(go list -m)

  echo "Generating CustomResourceDefinitions"
  go tool -modfile=hack/codegen/go.mod controller-gen crd 'paths=./pkg/apis/...' output:crd:artifacts:config=artifacts/crd ||
    codegen::fail "controller-gen ended with status $?"
  if [[ "${#dirs[@]}" -gt 1 ]]; then
    codegen::merge_versions
  fi
  codegen::write_kustomization
  codegen::write_references "${dirs[@]}"

  kube::codegen::gen_helpers "${options[@]}" "${lint[@]}" pkg/apis
  kube::codegen::gen_register "${options[@]}" "${lint[@]}" pkg/apis
  # With --update-report, violations of the API rules are no errors: most are in types of
  # apimachinery.
  kube::codegen::gen_openapi "${options[@]}" --report-filename /dev/null --update-report \
    --output-dir pkg/generated/openapi --output-pkg "${module}/pkg/generated/openapi" \
    --output-model-name-file zz_generated.model_name.go pkg/apis
  # Write a file, because a process substitution would hide this program's error.
  go run ./hack/models-schema >pkg/generated/openapi/schema.json ||
    codegen::fail "hack/models-schema ended with status $?"

  # kube_codegen.sh searches these directories for old files, and prints an error if one does
  # not exist.
  mkdir -p pkg/generated/{applyconfiguration,clientset,listers,informers}
  plurals=$(for dir in "${dirs[@]}"; do codegen::kinds "${dir}"; done | sed -n '/:/p' | LC_ALL=C sort -u | paste -sd , -)
  kube::codegen::gen_client "${options[@]}" "${lint[@]}" --with-watch --with-applyconfig \
    --applyconfig-openapi-schema pkg/generated/openapi/schema.json --plural-exceptions "${plurals}" \
    --output-dir pkg/generated --output-pkg "${module}/pkg/generated" pkg/apis
  for dir in "${dirs[@]}"; do
    codegen::check_made "${dir}"
  done

  echo "Compiling the generated code"
  go build ./pkg/... || codegen::fail "the generated code does not compile"
}
