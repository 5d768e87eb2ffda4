##@ Kubernetes versions

.PHONY: skew
skew: bin/devcluster ## Run the end-to-end tests on each Kubernetes version that devcluster emulates, and write the table in README.md (15 minutes)
	@hack/skew.sh
