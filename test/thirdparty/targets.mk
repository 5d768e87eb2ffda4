# On a devcluster, the end-to-end tests also build and run a program compiled with
# upstream's clients, and upstream's controller. This downloads modules.
test-e2e flakes skew: export THIRDPARTY = $(if $(E2E_KUBECONFIG),,1)
