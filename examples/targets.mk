##@ Examples

# make docs-test runs it, too.
.PHONY: test-examples
test-examples: build ## Generate a project with the example controllers, test it, and run it on a cluster: the commands of examples/README.md
	$(check) examples env GOFLAGS="-trimpath -buildvcs=false -vet=off" $(call go-test,-C tools/docs) -v -timeout=0 -run='^TestDocuments$$' . -args -only=examples/README.md $$DOCS_FLAGS
