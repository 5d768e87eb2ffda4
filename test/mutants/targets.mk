##@ Mutants

# A regular expression for the mutants, and the targets of make to run on each.
MUTANTS ?= .
SUITES ?= test-unit test-policy simulation explore-small test-faults test-e2e

.PHONY: mutants
mutants: ## Record in _output/mutants.csv which suites notice which mutants: many hours (MUTANTS=regexp, SUITES="target...")
	@test/mutants/record.sh '$(MUTANTS)' $(SUITES)
