# "make help" lists the targets. The checks themselves are in hack/check.sh. A directory that
# can be deleted has its own targets.mk.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tests use the user's cluster only if KUBECONFIG is an argument of make, as in make TARGET
# KUBECONFIG=... An exported KUBECONFIG is ignored, because it usually names a cluster that is
# in use.
ifeq ($(origin KUBECONFIG),command line)
export E2E_KUBECONFIG := $(KUBECONFIG)
else
unexport E2E_KUBECONFIG
endif
unexport KUBECONFIG
# With CDPATH, cd prints the directory, and may find another one. The scripts unset it, too.
unexport CDPATH

# Passed to each go test, for example -v.
export GO_TEST_FLAGS ?=
# The name of the image, with the registry unless it is Docker's. The tag may come from someone
# else, so neither make nor the shell may interpret it as code: recipes read it from the
# environment.
IMAGE ?= sample-controller:latest
override IMAGE := $(value IMAGE)
export IMAGE

# hack/check.sh NAME runs a check of that script. A command replaces the check.
check := @hack/check.sh
go-test = go test $(1) -vet=off $$GO_TEST_FLAGS -count=1
with-devcluster := DEVCLUSTER_BIN="$(CURDIR)/bin/devcluster"

.PHONY: help
help: ## List the targets
	@awk -F " *:[^#]*## " '/^##@ / { printf "\n%s:\n", substr($$0, 5) } \
		/^[a-z0-9-]+ *:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Build

.PHONY: build
build: bin/sample-controller ## Build the programs in bin that other targets need

.PHONY: install-yaml
install-yaml: ## Write the installation's manifests to _output/install.yaml (IMAGE=registry/name:tag or @digest)
	@hack/install-yaml.sh "$$IMAGE" _output/install.yaml

.PHONY: clean
clean: ## Remove build output
	rm -rf bin _output

##@ Change

.PHONY: update-codegen
update-codegen: ## Generate code and the CRD from pkg/apis
	@hack/update-codegen.sh

.PHONY: fmt
fmt: bin/golangci-lint ## Format the hand-written Go code
	@bin/golangci-lint fmt

##@ Check

.PHONY: test
test: fmt-check tidy-check shellcheck verify-codegen test-unit build test-policy vet lint ## Run the checks for each change: format, vet, lint, generated code, admission policy, unit tests, tests on a cluster

.PHONY: test-all
test-all: test ## Run make test and all other checks

.PHONY: fmt-check
fmt-check: ## Check that the Go code is formatted
	$(check) fmt

.PHONY: tidy-check
tidy-check: ## Check that each go.mod is tidy
	$(check) tidy

.PHONY: shellcheck
shellcheck: ## Check the shell scripts, if shellcheck is installed
	$(check) shellcheck

.PHONY: verify-codegen
verify-codegen: ## Check that the generated code is up to date with pkg/apis
	$(check) verify-codegen

.PHONY: test-unit
test-unit: ## Run the unit tests, with the race detector if there is a C compiler
	$(check) unit

.PHONY: test-policy
test-policy: ## Test that the admission policy allows the controller's writes, and rejects others
	$(check) policy

.PHONY: vet
vet: ## Run go vet in each module
	$(check) vet

.PHONY: lint
lint: bin/golangci-lint bin/actionlint ## Run golangci-lint in each module, and actionlint on the workflow
	$(check) lint

.PHONY: vulnerabilities
vulnerabilities: ## List the known vulnerabilities that the program reaches, from a database on the network
	$(check) vulnerabilities

.PHONY: api-check
test-all: api-check
api-check: bin/apidiff ## Compare the exported API of the library with that of the last release
	$(check) api hack/api.sh

# Programs are always rebuilt, because only the go command knows whether they are up to date.
.PHONY: FORCE
FORCE:

bin/sample-controller: FORCE
	@hack/build.sh -stamp . . $@

bin/apidiff: FORCE
	@hack/build.sh hack/tools ./apidiff $@

bin/golangci-lint: FORCE
	@hack/build.sh hack/tools sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter $@

bin/actionlint: FORCE
	@hack/build.sh hack/tools github.com/rhysd/actionlint/cmd/actionlint $@

# The targets of directories that can be deleted: see "What can be deleted" in CONTRIBUTING.md.
include $(sort $(wildcard */targets.mk */*/targets.mk */*/*/targets.mk))
