##@ Fuzzing

# How long each fuzz target runs: a number of inputs, as in 5000x, or a duration. Before 1.27, Go
# may report the end of a duration as a failure (go.dev/issue/75804).
export FUZZ_TIME ?= 5000x

.PHONY: fuzz
test-all: fuzz
fuzz: ## Fuzz syncing, trimming and the CRD, each for FUZZ_TIME (5000x: a number of inputs; 10m: a duration)
	$(check) fuzz hack/fuzz.sh
