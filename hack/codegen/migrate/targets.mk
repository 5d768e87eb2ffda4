##@ API versions

.PHONY: test-migrate
test-migrate: bin/devcluster ## Move objects between two versions of an API, on a devcluster
	$(check) migrate env $(with-devcluster) bin/devcluster run -without=kube-scheduler,kwok -- \
		$(call go-test,-C hack/codegen) -timeout=30m -run='^TestMigration$$' ./migrate
