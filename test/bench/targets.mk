##@ Benchmark

# Passed to the benchmark, for example -part=throughput; see bin/bench -help.
BENCH_FLAGS ?=

.PHONY: budgets
test-all: budgets
budgets: bin/devcluster ## Count the controller's requests for a new Foo, at a start, and at rest
	$(check) budgets env $(with-devcluster) $(call go-test,-C test/bench) -timeout=10m ./...

.PHONY: bench
bench: bin/devcluster bin/bench ## Compare the controller with others, and write docs/benchmarks.md (80 minutes on 2 cores)
	@bin/bench -docs=docs $(BENCH_FLAGS)

.PHONY: bench-quick
bench-quick: bin/devcluster bin/bench ## Run a short benchmark, which writes to _output/bench
	@bin/bench -quick $(BENCH_FLAGS)

.PHONY: bench-report
bench-report: bin/bench ## Write docs/benchmarks.md from the last results of make bench
	@bin/bench -report -results=docs/benchmarks/results.json -docs=docs

bin/bench: FORCE
	@hack/build.sh test/bench . $@
