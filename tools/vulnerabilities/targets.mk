##@ Vulnerabilities

.PHONY: vulnerabilities
vulnerabilities: ## Report the known vulnerabilities that the released programs reach; fails if vuln.go.dev can't be read
	@tools/vulnerabilities/check.sh

.PHONY: test-vulnerabilities
test-all: test-vulnerabilities
test-vulnerabilities: ## The same, but skipped if vuln.go.dev can't be read
	$(check) vulnerabilities tools/vulnerabilities/check.sh
