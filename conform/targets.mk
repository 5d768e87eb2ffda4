##@ Conform

# The arguments for this repository's controller.
conform-ours = -crd=artifacts/crd/samplecontroller.k8s.io_foos.yaml -object=artifacts/examples/example-foo.yaml \
	-object=conform/subjects/scale.yaml -object=conform/subjects/rename.yaml \
	-settings=conform/subjects/ours.yaml -output=_output/conform

.PHONY: test-conform
test-all: test-conform
test-conform: bin/devcluster bin/sample-controller ## Judge the controller by crashes and by its silence at rest, with conform
	$(check) conform go run ./conform $(conform-ours) -run='^(quiet|crash-safe)/' -- bin/sample-controller -resync=0

.PHONY: conform
conform: bin/devcluster bin/sample-controller ## Judge the controller by all faults that conform has, as it judges any controller
	go run ./conform $(conform-ours) -- bin/sample-controller -resync=0
