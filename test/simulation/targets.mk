##@ Simulation

# The statuses that the controllers of the simulation wrote, for test-waiters.
statuses := $(CURDIR)/_output/statuses

.PHONY: simulation
test: simulation
simulation: ## Inject every fault at every call and event, and pairs of faults, with an API server in memory
	@rm -rf "$(statuses)" && mkdir -p "$(statuses)"
	$(check) simulation env RECORDED_STATUSES="$(statuses)" $(call go-test,-timeout=40m -run='^TestSimulation(Random)?$$') -rapid.checks=500 -simulation.pairs=300 .
	$(check) simulation-of-others $(call go-test,-timeout=40m -run='^Test(SimulationOf|Galleries)') . ./pkg/reconcile/reconciletest
