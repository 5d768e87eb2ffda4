# "make help" lists what there is. The checks themselves are in hack/check.sh.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# One thing at a time: each uses all cores, and some share a cluster's ports.
.NOTPARALLEL:

# An exported KUBECONFIG names a cluster that somebody works with. Tests go there
# only when make itself is told so: make test-e2e KUBECONFIG=...
ifeq ($(origin KUBECONFIG),command line)
export E2E_KUBECONFIG := $(KUBECONFIG)
else
unexport E2E_KUBECONFIG
endif
unexport KUBECONFIG

# Passed to each go test, for example -v.
export GO_TEST_FLAGS ?=
# How long each fuzz target runs: a number of inputs, as in 5000x, or a duration.
# Of a duration, Go before 1.27 may take the end for a failure (go.dev/issue/75804).
export FUZZ_TIME ?= 5000x
# The minor version of Kubernetes that the cluster of the end-to-end tests emulates, such as 1.35; empty, its own.
export EMULATED_VERSION ?=
# The name of the image, with the registry where that is not Docker's, and its
# platforms; empty, linux on this machine's architecture.
IMAGE ?= sample-controller:latest
IMAGE_PLATFORMS ?=
# make push-image FORCE=1 pushes what it otherwise refuses. Only make itself can be told so, never an environment.
force = $(and $(filter command,$(origin FORCE)),$(filter 1,$(FORCE)),-force)

# How often make flakes repeats the unit tests, and those end to end.
FLAKES ?= 20 10

# hack/check.sh NAME, or NAME and a command, which then is the check.
check := @hack/check.sh
go-test = go test $(1) -vet=off $$GO_TEST_FLAGS -count=1
with-devcluster := DEVCLUSTER_BIN="$(CURDIR)/bin/devcluster"

.PHONY: help
help: ## Show this list
	@awk -F " *:[^#]*## " '/^##@ / { printf "\n%s:\n", substr($$0, 5) } \
		/^[a-z0-9-]+ *:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

##@ Build and see

.PHONY: build
build: bin/sample-controller ## Build bin/sample-controller and bin/devcluster

.PHONY: image
image: ## Make a container image, without Docker, in _output/image (IMAGE=name:tag IMAGE_PLATFORMS=linux/amd64,linux/arm64)
	@hack/image.sh "$(IMAGE)" "$(IMAGE_PLATFORMS)" _output/image

.PHONY: push-image
push-image: ## Make the image and push it, with the list of what is in it, to the registry that IMAGE says (FORCE=1: over another of that tag, or of a changed tree)
	@hack/image.sh -push $(force) "$(IMAGE)" "$(IMAGE_PLATFORMS)" _output/image

.PHONY: install-yaml
install-yaml: ## Write the installation into one file, _output/install.yaml (IMAGE=registry/name:tag or @digest)
	@hack/install-yaml.sh "$(IMAGE)" _output/install.yaml

.PHONY: verify-image
verify-image: ## Build the commit of an image again and compare the two (IMAGE=name@sha256:digest)
	@hack/image.sh -verify "$(IMAGE)"

.PHONY: clean
clean: ## Remove what the build made
	rm -rf bin _output

##@ Change

.PHONY: update-codegen
update-codegen: ## Make everything that is generated from pkg/apis again
	@hack/update-codegen.sh

.PHONY: fmt
fmt: bin/golangci-lint ## Format the hand-written Go code
	@bin/golangci-lint fmt

##@ Check

.PHONY: test
test: fmt-check tidy-check shellcheck verify-codegen test-unit build vet lint test-e2e ## Check the format, the code, what is generated, the unit tests and end to end

.PHONY: test-all
test-all: test fuzz test-codegen test-image ## Check everything else, too

.PHONY: flakes
flakes: bin/devcluster ## Repeat the unit and end-to-end tests beside two CPU hogs, until one fails (FLAKES="20 10": so many times)
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
verify-codegen: ## Check that the generated code is what pkg/apis makes
	$(check) verify-codegen

.PHONY: test-unit
test-unit: ## Run the unit tests, with the race detector where there is a C compiler
	$(check) unit

.PHONY: fuzz
fuzz: ## Fuzz syncing, trimming and the CRD, each target for FUZZ_TIME (5000x: that many inputs; 10m: that long)
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
test-image: ## Make the image from two clones, and look at what is in it
	$(check) image

.PHONY: test-e2e
test-e2e: ## Run the end-to-end tests on a devcluster, or on yours: make test-e2e KUBECONFIG=file
	$(check) e2e

# Programs are handed to the go command each time: it knows what is up to date.
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
simulation: ## Try every fault at every call and event, on an API server in memory
	$(check) simulation go test -vet=off $$GO_TEST_FLAGS -run='^TestSimulation' -rapid.checks=500 .

##@ Development cluster

.PHONY: test-devcluster
test-all: test-devcluster
test-devcluster: bin/devcluster ## Test devcluster: real clusters, started and killed
	$(check) devcluster env $(with-devcluster) $(call go-test,-C devcluster) -timeout=15m ./test

build test-e2e install-yaml: bin/devcluster
# These compile what devcluster imports; building it first shows how far that is.
vet lint: bin/devcluster

bin/devcluster: FORCE
	@hack/build.sh devcluster . $@

##@ Demo and timeline

# Passed to the demo, for example -exit.
DEMO_FLAGS ?=

.PHONY: demo
demo: build bin/demo ## Show a Foo become running Pods, in a cluster of its own (DEMO_FLAGS=-exit: scale it, delete it, and end)
	@bin/demo $(DEMO_FLAGS)

.PHONY: timeline
timeline: build bin/demo ## Draw a Foo's create, scale and delete, as they happen in a cluster, to docs/timeline.svg
	@bin/demo -exit -picture=docs/timeline.svg

docs-test: bin/demo # newproject:omit

bin/demo: FORCE
	@hack/build.sh . ./tools/demo $@

##@ Monitoring

.PHONY: monitoring
test-all: monitoring
monitoring: ## Test the alert rules and the dashboard, where promtool is installed
	@command -v bin/promtool promtool >/dev/null || \
		echo "promtool is not installed (Debian has it in the package prometheus): rules and expressions are not tested"
	$(check) monitoring $(call go-test) ./artifacts/monitoring

##@ Helm chart

.PHONY: chart
chart: ## Make the Helm chart in artifacts/chart again, of what kustomize renders
	@cd tools/chart && CGO_ENABLED=0 GOWORK=off go run -trimpath -buildvcs=false .

.PHONY: test-chart
test-all: test-chart
test-chart: bin/devcluster ## Lint the Helm chart, compare it with kustomize, install, upgrade and uninstall it on devclusters
	$(check) chart env $(with-devcluster) $(call go-test,-C tools/chart) -timeout=15m . ./test

##@ Kubernetes versions

.PHONY: skew
skew: bin/devcluster bin/skew ## Run the end-to-end tests on each Kubernetes that devcluster can emulate, and write the table in docs/operations.md (15 minutes on 2 cores)
	@bin/skew

bin/skew: FORCE
	@hack/build.sh . ./tools/skew $@

# newproject:omit begin
##@ Documents

# Passed to the documents' runner, for example -only=README.md; see bin/docs -help.
export DOCS_FLAGS ?=

.PHONY: docs-test
test-all: docs-test
docs-test: build bin/docs ## Run the command blocks of README.md and docs/, and compare what they print
	$(check) docs bin/docs $$DOCS_FLAGS

bin/docs: FORCE
	@hack/build.sh tools/docs . $@

##@ Faults

.PHONY: test-faults
test-all: test-faults
test-faults: bin/devcluster ## Break what the controller relies on, in some of the ways that make faults tries (FAULTS_SEED=N repeats a choice)
	$(check) faults env FAULTS="$${FAULTS:-quick}" $(with-devcluster) bin/devcluster run -nodes=3 -- $(call go-test) -timeout=60m ./test/faults/...

.PHONY: faults
faults: bin/devcluster ## Break it in all of them, compare with upstream's controller, and write docs/faults.md
	$(check) faults env FAULTS=all FAULTS_REPORT="$(CURDIR)/docs/faults.md" $(with-devcluster) \
		bin/devcluster run -nodes=3 -- $(call go-test) -timeout=60m ./test/faults/...

##@ New project

.PHONY: test-new-project
test-all: test-new-project
test-new-project: ## Make projects with other names of this one, three of five, and check them
	$(check) new-project env NEW_PROJECTS=quick $(call go-test) -timeout=60m -run='^TestNewProjects$$' ./tools/newproject

.PHONY: test-new-projects
test-new-projects: ## Make all five, and have two of them pass all of their own checks (half an hour on 2 cores)
	$(check) new-project env NEW_PROJECTS=all $(call go-test) -timeout=60m -run='^TestNewProjects$$' ./tools/newproject

##@ Benchmark

# Passed to the benchmark, for example -part=throughput; see bin/bench -help.
BENCH_FLAGS ?=

.PHONY: budgets
test-all: budgets
budgets: bin/devcluster ## Count what the controller asks of the API server: for a new Foo, at rest, after a restart
	$(check) budgets env $(with-devcluster) $(call go-test,-C test/bench) -timeout=10m ./...

.PHONY: bench
bench: bin/devcluster bin/bench ## Measure the controller beside others, and write docs/benchmarks.md (40 minutes on 2 cores)
	@bin/bench -docs=docs $(BENCH_FLAGS)

.PHONY: bench-quick
bench-quick: bin/devcluster bin/bench ## The same with little of everything, into _output/bench
	@bin/bench -quick $(BENCH_FLAGS)

.PHONY: bench-report
bench-report: bin/bench ## Write docs/benchmarks.md from what make bench has measured before
	@bin/bench -report -results=docs/benchmarks/results.json -docs=docs

bin/bench: FORCE
	@hack/build.sh test/bench . $@
# newproject:omit end
