##@ New project

.PHONY: test-new-project-plans
test: test-new-project-plans
test-new-project-plans: ## Check what newproject writes, in seconds
	$(check) new-project-plans $(call go-test) -short ./tools/newproject

.PHONY: test-new-project
test-all: test-new-project
test-new-project: ## Generate two projects, run their tests and demos, and update them
	$(check) new-project env NEW_PROJECT=yes $(call go-test,-timeout=40m -run='^TestNewProject') ./tools/newproject
