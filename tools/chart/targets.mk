##@ Helm chart

.PHONY: chart
chart: ## Generate the Helm chart in artifacts/chart from what kustomize renders
	@cd tools/chart && CGO_ENABLED=0 GOWORK=off go run -trimpath -buildvcs=false .

.PHONY: test-chart
test-all: test-chart
test-chart: bin/devcluster ## Lint the Helm chart, compare it with kustomize, and install, upgrade and uninstall it on devclusters
	$(check) chart env $(with-devcluster) $(call go-test,-C tools/chart) -timeout=15m . ./test
