##@ Monitoring

.PHONY: monitoring
test-all: monitoring
monitoring: ## Test the alert rules and the dashboard, if promtool is installed
	@command -v bin/promtool promtool >/dev/null || \
		echo "promtool is not installed (it is in Debian's package prometheus), so rules and expressions are not tested"
	$(check) monitoring $(call go-test) ./artifacts/monitoring
