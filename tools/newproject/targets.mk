##@ New project

.PHONY: test-new-project-plans
test: test-new-project-plans
test-new-project-plans: ## Check the contents of new projects, in seconds
	$(check) new-project-plans $(call go-test) ./tools/newproject

.PHONY: test-new-project
test-all: test-new-project
test-new-project: ## Generate two projects from this one, and check them
	$(check) new-project env NEW_PROJECTS=quick $(call go-test) -timeout=60m -run='^TestNewProjects$$' ./tools/newproject

.PHONY: test-new-projects
test-new-projects: ## Generate all five projects, and run all checks of two of them (half an hour on 2 cores)
	$(check) new-project env NEW_PROJECTS=all $(call go-test) -timeout=60m -run='^TestNewProjects$$' ./tools/newproject
