##@ Code generation

.PHONY: test-codegen
test-all: test-codegen
test-codegen: bin/devcluster ## Test the scripts that generate code on copies of the tree, and the clients on a devcluster
	$(check) codegen env $(with-devcluster) $(call go-test,-C hack/codegen) -timeout=40m .
