##@ Exploration

.PHONY: explore-small
test-all: explore-small
explore-small: ## Explore every interleaving of small worlds, and of one mutant, which must be found
	$(check) explore-small sh -c '$(call go-test,-timeout=40m -run="^TestExplore$$") . -args -explore=small && \
		$(call go-test) ./test/simulation/explore -args -mutants=consent'

.PHONY: explore-conformance
test-all: explore-conformance
explore-conformance: bin/devcluster ## Replay random paths of the exploration on a real API server, and compare the results (PATHS=60)
	$(check) explore-conformance env $(with-devcluster) $(call go-test,-timeout=0 -v -run='^TestExploreConformance$$') \
		. -args -explore.paths=$(or $(PATHS),60)

.PHONY: explore
explore: ## Explore every interleaving of large worlds, one or two hours (EXPLORE=name: one world)
	GOGC=200 go test -vet=off -count=1 -timeout=0 -v -run='^TestExplore$$' . -args -explore=$(or $(EXPLORE),large)

.PHONY: explore-mutants
explore-mutants: ## Explore copies of the controller with one mistake each, half an hour
	go test -vet=off -count=1 -timeout=0 -v -run='^TestMutants$$' ./test/simulation/explore -args -mutants=.
