##@ Simulation

.PHONY: simulation
test: simulation
simulation: ## Inject every fault at every call and event, on an API server in memory
	$(check) simulation go test -vet=off $$GO_TEST_FLAGS -run='^TestSimulation' -rapid.checks=500 .
