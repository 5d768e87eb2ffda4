##@ Documents

# -only=README.md runs one document, -v prints the output of its blocks, and -keep keeps the copies of the tree.
export DOCS_FLAGS ?=

.PHONY: docs-test
test-all: docs-test
docs-test: build $(if $(wildcard tools/kubectl-foo),bin/kubectl-foo) ## Run the command blocks of the documents, and compare their output
	$(check) docs env GOFLAGS="$$GOFLAGS -vet=off" $(call go-test,-C hack/tools/docs) -v -timeout=0 -parallel=4 -run='^TestDocuments$$' . -args -only=all $$DOCS_FLAGS
