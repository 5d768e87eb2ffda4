##@ Tools that wait

.PHONY: test-waiters
test: test-waiters
ifdef statuses
test-waiters: simulation
endif
test-waiters: ## Check that neither kstatus (Helm, Flux) nor Argo CD believes a Foo before it is carried out
	$(check) waiters $(if $(statuses),env RECORDED_STATUSES="$(statuses)") $(call go-test,-C test/waiters) .
