##@ Examples

# make docs-test runs them, too. EXAMPLES=examples/namespaces/README.md runs that one alone.
export EXAMPLES ?= examples/README.md,examples/namespaces/README.md
.PHONY: test-examples
test-examples: build ## Generate projects with the example controllers, test them, and run them on clusters: the commands of examples/README.md and of namespaces
	$(check) examples env GOFLAGS="$$GOFLAGS -vet=off" $(call go-test,-C hack/tools/docs) -v -timeout=0 -run='^TestDocuments$$' . -args -only=$$EXAMPLES $$DOCS_FLAGS
