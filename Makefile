# "make help" lists the targets. The checks themselves are in hack/check.sh.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# One target at a time, because each uses all cores, and some share a cluster's ports.
.NOTPARALLEL:

# Tests use the user's cluster only if KUBECONFIG is an argument of make, as in make
# test-e2e KUBECONFIG=... An exported KUBECONFIG is ignored, because it usually names a
# cluster that somebody works with.
ifeq ($(origin KUBECONFIG),command line)
export E2E_KUBECONFIG := $(KUBECONFIG)
else
unexport E2E_KUBECONFIG
endif
unexport KUBECONFIG

# Passed to each go test, for example -v.
export GO_TEST_FLAGS ?=
# How long each fuzz target runs: a number of inputs, as in 5000x, or a duration. Go
# before 1.27 may report the end of a duration as a failure (go.dev/issue/75804).
export FUZZ_TIME ?= 5000x
# The minor version of Kubernetes that the cluster of the end-to-end tests emulates, such
# as 1.35. By default it emulates none.
export EMULATED_VERSION ?=
# The name of the image, with the registry unless it is Docker's, and its platforms. The
# default platform is Linux on this machine's architecture.
IMAGE ?= sample-controller:latest
IMAGE_PLATFORMS ?=
# make push-image FORCE=1 skips the checks. FORCE in the environment has no effect.
force = $(and $(filter command,$(origin FORCE)),$(filter 1,$(FORCE)),-force)

# How often make flakes repeats the unit tests and the end-to-end tests.
FLAKES ?= 20 10

# hack/check.sh NAME runs a check of that script; with a command, the command is the
# check.
check := @hack/check.sh
go-test = go test $(1) -vet=off $$GO_TEST_FLAGS -count=1
with-devcluster := DEVCLUSTER_BIN="$(CURDIR)/bin/devcluster"

.PHONY: help
help: ## Show this list
	@awk -F " *:[^#]*## " '/^##@ / { printf "\n%s:\n", substr($$0, 5) } \
		/^[a-z0-9-]+ *:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

##@ Build

.PHONY: build
build: bin/sample-controller ## Build bin/sample-controller and bin/devcluster

.PHONY: image
image: ## Make a container image in _output/image, without Docker (IMAGE=name:tag IMAGE_PLATFORMS=linux/amd64,linux/arm64)
	@hack/image.sh "$(IMAGE)" "$(IMAGE_PLATFORMS)" _output/image

.PHONY: push-image
push-image: ## Make the image and push it, with its bill of materials, to the registry in IMAGE (FORCE=1: replace the tag, allow a changed tree)
	@hack/image.sh -push $(force) "$(IMAGE)" "$(IMAGE_PLATFORMS)" _output/image

.PHONY: install-yaml
install-yaml: ## Write the manifests of the installation to _output/install.yaml (IMAGE=registry/name:tag or @digest)
	@hack/install-yaml.sh "$(IMAGE)" _output/install.yaml

.PHONY: verify-image
verify-image: ## Rebuild an image from its commit and compare the two (IMAGE=name@sha256:digest)
	@hack/image.sh -verify "$(IMAGE)"

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
test: fmt-check tidy-check shellcheck verify-codegen test-unit build test-policy vet lint test-e2e ## Run the checks for each change: format, vet, lint, generated code, admission policy, unit and end-to-end tests

.PHONY: test-all
test-all: test fuzz test-codegen test-image ## Run make test and all other checks

.PHONY: flakes
flakes: ## Repeat the unit and end-to-end tests beside two CPU hogs until one fails (FLAKES="20 10": the numbers of runs)
	@hack/flakes.sh $(FLAKES)

.PHONY: fmt-check
fmt-check: ## Check that the Go code is formatted
	$(check) fmt

.PHONY: tidy-check
tidy-check: ## Check that each go.mod is tidy
	$(check) tidy

.PHONY: shellcheck
shellcheck: ## Check the shell scripts, where shellcheck is installed
	$(check) shellcheck

.PHONY: verify-codegen
verify-codegen: ## Check that the generated code is up to date with pkg/apis
	$(check) verify-codegen

.PHONY: test-unit
test-unit: ## Run the unit tests, with the race detector where there is a C compiler
	$(check) unit

.PHONY: test-policy
test-policy: ## Test the admission policy against what the controller writes, and what it must not write
	$(check) policy

.PHONY: fuzz
fuzz: ## Fuzz syncing, trimming and the CRD, each for FUZZ_TIME (5000x: a number of inputs; 10m: a duration)
	$(check) fuzz

.PHONY: vet
vet: ## Run go vet in each module
	$(check) vet

.PHONY: lint
lint: bin/golangci-lint ## Run golangci-lint in each module
	$(check) lint

.PHONY: test-codegen
test-codegen: ## Test the scripts that generate code, on copies of the tree
	$(check) codegen

.PHONY: test-image
test-image: ## Make the image from two clones, and check it
	$(check) image

.PHONY: test-e2e
test-e2e: ## Run the end-to-end tests on a devcluster, or on your cluster (KUBECONFIG=file)
	$(check) e2e

# Programs are always rebuilt, because only the go command knows whether they are up to
# date.
.PHONY: FORCE
FORCE:

bin/sample-controller: FORCE
	@hack/build.sh -stamp . . $@

bin/golangci-lint: FORCE
	@hack/build.sh tools/lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint $@

# Each section from here on can be deleted: see "What can be deleted" in CONTRIBUTING.md.

##@ Simulation

.PHONY: simulation
test: simulation
simulation: ## Inject every fault at every call and event, on an API server in memory
	$(check) simulation go test -vet=off $$GO_TEST_FLAGS -run='^TestSimulation' -rapid.checks=500 .

##@ Development cluster

.PHONY: test-devcluster
test-all: test-devcluster
test-devcluster: bin/devcluster ## Test devcluster: start, kill and stop real clusters
	$(check) devcluster env $(with-devcluster) $(call go-test,-C devcluster) -timeout=15m ./test

build test-e2e flakes install-yaml: bin/devcluster
# These compile the packages that devcluster imports. Building devcluster first shows the
# progress.
test-policy vet lint: bin/devcluster

bin/devcluster: FORCE
	@hack/build.sh devcluster . $@

##@ Demo and timeline

# Passed to the demo, for example -exit.
DEMO_FLAGS ?=

.PHONY: demo
demo: build bin/demo ## Show in a new cluster how a Foo gets running Pods (DEMO_FLAGS=-exit: then scale it, delete it, and exit)
	@bin/demo $(DEMO_FLAGS)

.PHONY: timeline
timeline: build bin/demo ## Draw docs/timeline.svg: a Foo's create, scale and delete in a cluster
	@bin/demo -exit -picture=docs/timeline.svg

docs-test: bin/demo # newproject:omit

bin/demo: FORCE
	@hack/build.sh . ./tools/demo $@

##@ Monitoring

.PHONY: monitoring
test-all: monitoring
monitoring: ## Test the alert rules and the dashboard, if promtool is installed
	@command -v bin/promtool promtool >/dev/null || \
		echo "promtool is not installed (Debian has it in the package prometheus): rules and expressions are not tested"
	$(check) monitoring $(call go-test) ./artifacts/monitoring

##@ Helm chart

.PHONY: chart
chart: ## Generate the Helm chart in artifacts/chart from what kustomize renders
	@cd tools/chart && CGO_ENABLED=0 GOWORK=off go run -trimpath -buildvcs=false .

.PHONY: test-chart
test-all: test-chart
test-chart: bin/devcluster ## Lint the Helm chart, compare it with kustomize, and install, upgrade and uninstall it on devclusters
	$(check) chart env $(with-devcluster) $(call go-test,-C tools/chart) -timeout=15m . ./test

##@ Kubernetes versions

.PHONY: skew
skew: bin/devcluster bin/skew ## Run the end-to-end tests on each Kubernetes version that devcluster emulates, and write the table in docs/operations.md (15 minutes)
	@bin/skew

bin/skew: FORCE
	@hack/build.sh . ./tools/skew $@

# newproject:omit begin
##@ Documents

# Passed to the documents' runner, for example -only=README.md; see bin/docs -help.
export DOCS_FLAGS ?=

.PHONY: docs-test
test-all: docs-test
docs-test: build bin/docs ## Run the command blocks of the documents, and compare their output
	$(check) docs bin/docs $$DOCS_FLAGS

bin/docs: FORCE
	@hack/build.sh tools/docs . $@

##@ Faults

.PHONY: test-faults
test-all: test-faults
test-faults: bin/devcluster ## Run a random selection of make faults (FAULTS_SEED=N repeats a selection)
	$(check) faults env FAULTS="$${FAULTS:-quick}" $(with-devcluster) bin/devcluster run -nodes=3 -- $(call go-test) -timeout=60m ./test/faults/...

.PHONY: faults
faults: bin/devcluster ## Inject faults into all that the controller relies on, compare it with upstream's controller, and write docs/faults.md
	$(check) faults env FAULTS=all FAULTS_REPORT="$(CURDIR)/docs/faults.md" $(with-devcluster) \
		bin/devcluster run -nodes=3 -- $(call go-test) -timeout=60m ./test/faults/...

##@ New project

.PHONY: test-new-project
test-all: test-new-project
test-new-project: ## Make three projects with other names from this one, and check them
	$(check) new-project env NEW_PROJECTS=quick $(call go-test) -timeout=60m -run='^TestNewProjects$$' ./tools/newproject

.PHONY: test-new-projects
test-new-projects: ## Make all five projects, and run all checks of two of them (half an hour on 2 cores)
	$(check) new-project env NEW_PROJECTS=all $(call go-test) -timeout=60m -run='^TestNewProjects$$' ./tools/newproject

##@ Benchmark

# Passed to the benchmark, for example -part=throughput; see bin/bench -help.
BENCH_FLAGS ?=

.PHONY: budgets
test-all: budgets
budgets: bin/devcluster ## Count the controller's requests for a new Foo, at rest, and after a restart
	$(check) budgets env $(with-devcluster) $(call go-test,-C test/bench) -timeout=10m ./...

.PHONY: bench
bench: bin/devcluster bin/bench ## Compare the controller with others, and write docs/benchmarks.md (40 minutes on 2 cores)
	@bin/bench -docs=docs $(BENCH_FLAGS)

.PHONY: bench-quick
bench-quick: bin/devcluster bin/bench ## Run a short version of the benchmark, which writes to _output/bench
	@bin/bench -quick $(BENCH_FLAGS)

.PHONY: bench-report
bench-report: bin/bench ## Write docs/benchmarks.md from the last results of make bench
	@bin/bench -report -results=docs/benchmarks/results.json -docs=docs

bin/bench: FORCE
	@hack/build.sh test/bench . $@
# newproject:omit end
