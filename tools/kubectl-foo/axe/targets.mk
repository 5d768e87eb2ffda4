.PHONY: test-axe
test-all: test-axe
test-axe: bin/kubectl-foo ## Check the plugin's page with axe-core in Chromium, in light and dark (installs npm packages in _output)
	$(check) axe tools/kubectl-foo/axe/check.sh
