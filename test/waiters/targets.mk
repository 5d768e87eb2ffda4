##@ Tools that wait

.PHONY: test-waiters
test: test-waiters
test-waiters: ## Check that neither kstatus (Helm, Flux) nor Argo CD believes a Foo before it is carried out
	$(check) waiters $(call go-test,-C test/waiters) .
