##@ Mutants

.PHONY: mutants
mutants: ## Record in _output/mutants.csv which suites notice which mutants: many hours (MUTANTS=regexp, SUITES="target...")
	go run ./test/mutants/record $(if $(MUTANTS),-mutants='$(MUTANTS)') $(if $(SUITES),-suites="$(SUITES)")
