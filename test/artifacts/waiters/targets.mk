##@ Tools that wait

.PHONY: test-waiters
test: test-waiters
ifneq ($(wildcard test/simulation/targets.mk),)
test-waiters: simulation
endif
test-waiters: ## Check that neither kstatus (Helm, Flux) nor Argo CD reports success before a Foo is in its desired state
	$(check) waiters $(if $(statuses),env RECORDED_STATUSES="$(statuses)") $(call go-test,-C test/artifacts/waiters) .
