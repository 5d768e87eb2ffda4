##@ Faults

.PHONY: test-faults
test-all: test-faults
test-faults: bin/devcluster ## Run a random selection of the faults of make faults (FAULTS_SEED=N repeats a selection)
	$(check) faults env FAULTS="$${FAULTS:-quick}" $(with-devcluster) bin/devcluster run -nodes=3 -- $(call go-test) -parallel=12 -timeout=60m ./test/e2e ./test/faults/...

.PHONY: faults
faults: bin/devcluster ## Inject faults into everything the controller relies on, compare it with upstream's controller, and write docs/faults.md
	$(check) faults env FAULTS=all FAULTS_REPORT="$(CURDIR)/docs/faults.md" $(with-devcluster) \
		bin/devcluster run -nodes=3 -- $(call go-test) -parallel=12 -timeout=60m ./test/e2e ./test/faults/...
