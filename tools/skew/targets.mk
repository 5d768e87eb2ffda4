##@ Kubernetes versions

.PHONY: skew
skew: bin/devcluster bin/skew ## Run the end-to-end tests on each Kubernetes version that devcluster emulates, and write the table in README.md (15 minutes)
	@bin/skew

bin/skew: FORCE
	@hack/build.sh . ./tools/skew $@
