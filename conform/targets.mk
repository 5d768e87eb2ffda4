##@ Conform

.PHONY: test-conform
test-all: test-conform
test-conform: bin/devcluster bin/sample-controller ## Judge the controller by crashes and by its silence at rest, with conform
	$(check) conform go run ./conform -settings=conform/subjects/ours/settings.yaml -run="$${CONFORM_RUN:-^(quiet|crash-safe)/}"

.PHONY: conform
conform: bin/devcluster bin/sample-controller ## Judge a controller by all faults that conform has (SUBJECT=ours, deployment, ...: see conform/subjects)
	go run ./conform -settings=conform/subjects/$(or $(SUBJECT),ours)/settings.yaml -output=_output/conform/$(or $(SUBJECT),ours)
