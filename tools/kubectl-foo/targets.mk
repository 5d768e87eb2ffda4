##@ kubectl plugin

.PHONY: kubectl-foo
kubectl-foo: bin/kubectl-foo ## Build bin/kubectl-foo, the plugin "kubectl foo"

bin/kubectl-foo: FORCE
	@hack/build.sh tools/kubectl-foo . $@

KREW_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.PHONY: krew
krew: ## Build archives of the plugin and its krew manifest in _output/krew (VERSION=v1.2.3, URL=https://... unless go.mod names a GitHub repository)
	@tools/kubectl-foo/krew.sh "$$VERSION" "$$URL" _output/krew $(KREW_PLATFORMS)

.PHONY: test-kubectl-foo
test-all: test-kubectl-foo
test-kubectl-foo: bin/devcluster bin/kubectl-foo build ## Test the plugin, including on a devcluster with the controller
	$(check) kubectl-foo env $(with-devcluster) bin/devcluster run -audit-bodies=foos.samplecontroller.k8s.io,deployments.apps -- \
		$(call go-test,-C tools/kubectl-foo) -timeout=40m ./...
