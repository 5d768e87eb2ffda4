##@ kubectl plugin

.PHONY: kubectl-foo
kubectl-foo: bin/kubectl-foo ## Build bin/kubectl-foo, the plugin "kubectl foo"

bin/kubectl-foo: FORCE
	@hack/build.sh tools/kubectl-foo . $@

.PHONY: test-kubectl-foo
test-all: test-kubectl-foo
test-kubectl-foo: bin/devcluster bin/kubectl-foo build ## Test the plugin, also against the controller and the API server of a devcluster
	$(check) kubectl-foo env $(with-devcluster) bin/devcluster run -audit-bodies=foos.samplecontroller.k8s.io,deployments.apps -- \
		$(call go-test,-C tools/kubectl-foo) -timeout=20m ./...
