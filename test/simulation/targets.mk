##@ Simulation

.PHONY: simulation
test: simulation
simulation: ## Inject every fault at every call and event, and pairs of faults, on an API server in memory
	$(check) simulation go test -vet=off -timeout=20m $$GO_TEST_FLAGS -run='^TestSimulation' -rapid.checks=500 -simulation.pairs=300 .
