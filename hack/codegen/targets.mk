##@ Code generation

.PHONY: test-codegen
test-all: test-codegen
test-codegen: ## Test the scripts that generate code on copies of the tree
	$(check) codegen $(call go-test,-C hack/codegen) ./...
