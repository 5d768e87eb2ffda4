##@ End to end

# The minor version of Kubernetes that the cluster of the end-to-end tests emulates, such as
# 1.35. By default, it emulates none.
export EMULATED_VERSION ?=
# How often make flakes repeats the unit tests and the end-to-end tests.
FLAKES ?= 20 10

.PHONY: test-e2e
test: test-e2e
test-e2e: ## Run the end-to-end tests on a devcluster, or on your cluster (KUBECONFIG=file)
	$(check) e2e hack/e2e.sh

.PHONY: flakes
flakes: ## Repeat the unit and end-to-end tests beside two CPU hogs until one fails (FLAKES="20 10" sets the numbers of runs)
	@hack/flakes.sh $(FLAKES)
