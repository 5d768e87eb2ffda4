##@ Kubernetes versions

.PHONY: skew
skew: bin/devcluster ## Run the end-to-end tests on each Kubernetes version that devcluster emulates, and write a table of them (15 minutes)
	@hack/skew.sh
