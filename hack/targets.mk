##@ Kubernetes versions

.PHONY: skew
skew: bin/devcluster ## Run the end-to-end tests on each Kubernetes version that devcluster can emulate, and write a table of the results (6 minutes)
	@hack/skew.sh

.PHONY: next
next: ## Compile and test the root module with the newest Kubernetes modules, pre-releases included, and list what breaks
	@hack/next.sh
