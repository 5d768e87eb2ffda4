##@ kubectl plugin

.PHONY: kubectl-foo
kubectl-foo: bin/kubectl-foo ## Build bin/kubectl-foo, the plugin "kubectl foo"

bin/kubectl-foo: FORCE
	@hack/build.sh tools/kubectl-foo . $@

.PHONY: test-kubectl-foo
test-all: test-kubectl-foo
test-kubectl-foo: bin/devcluster ## Test the plugin, also against the controller and the API server of a devcluster
	$(check) kubectl-foo env $(with-devcluster) $(call go-test,-C tools/kubectl-foo) -timeout=20m ./...
