##@ Helm chart

.PHONY: chart
chart: ## Copy the manifests that the Helm chart shares with kustomize into artifacts/chart
	@hack/update-chart.sh

.PHONY: test-chart
test-all: test-chart
test-chart: bin/devcluster ## Lint the Helm chart, compare it with kustomize, and install, upgrade and uninstall it on devclusters
	$(check) chart env $(with-devcluster) $(call go-test,-C test/artifacts/chart) -timeout=40m ./...
