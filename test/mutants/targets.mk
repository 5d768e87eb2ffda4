##@ Mutants

.PHONY: mutants
mutants: ## Record which suites notice which mutants, in _output/mutants.csv: many hours (MUTANTS=regexp, SUITES="target...")
	go run ./test/mutants/record $(if $(MUTANTS),-mutants='$(MUTANTS)') $(if $(SUITES),-suites="$(SUITES)")
