##@ Development cluster

.PHONY: test-devcluster
test-all: test-devcluster
test-devcluster: bin/devcluster ## Test devcluster by starting, killing and stopping real clusters
	$(check) devcluster env $(with-devcluster) $(call go-test) -timeout=15m ./test/devcluster

build test-e2e flakes install-yaml: bin/devcluster
# These compile the packages that devcluster imports. Building devcluster first shows progress.
test-policy vet lint: bin/devcluster

bin/devcluster: FORCE
	@hack/build.sh devcluster . $@
