##@ Documents

# Passed to the documents' runner, for example -only=README.md; see bin/docs -help.
export DOCS_FLAGS ?=

.PHONY: docs-test
test-all: docs-test
docs-test: build bin/docs $(if $(wildcard tools/demo),bin/demo) $(if $(wildcard tools/kubectl-foo),bin/kubectl-foo) ## Run the command blocks of the documents, and compare their output
	$(check) docs env GOFLAGS="-trimpath -buildvcs=false -vet=off" bin/docs $$DOCS_FLAGS

bin/docs: FORCE
	@hack/build.sh tools/docs . $@
