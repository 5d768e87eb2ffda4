##@ Image

# The image's platforms; hack/image.sh has the defaults.
IMAGE_PLATFORMS ?=
override IMAGE_PLATFORMS := $(value IMAGE_PLATFORMS)
export IMAGE_PLATFORMS
# make push-image FORCE=1 skips the checks. FORCE in the environment has no effect.
force = $(and $(filter command,$(origin FORCE)),$(filter 1,$(FORCE)),-force)

.PHONY: image
image: ## Build a container image in _output/image, without Docker (IMAGE=name:tag IMAGE_PLATFORMS=linux/amd64,linux/arm64)
	@hack/image.sh "$$IMAGE" "$$IMAGE_PLATFORMS" _output/image

.PHONY: push-image
push-image: ## Build the image for linux/amd64 and linux/arm64, and push it to the registry in IMAGE (FORCE=1: skip the checks)
	@hack/image.sh -push $(force) "$$IMAGE" "$$IMAGE_PLATFORMS" _output/image

.PHONY: verify-image
verify-image: ## Rebuild an image from its commit and compare the digests (IMAGE=name@sha256:digest)
	@hack/image.sh -verify "$$IMAGE"

.PHONY: release
release: bin/apidiff $(if $(wildcard devcluster),bin/devcluster) ## Build what a tag carries into _output/release, and list it (VERSION=v1.2.3 IMAGE=name); publishes nothing
	@hack/release.sh "$$VERSION" "$$IMAGE"

.PHONY: test-image
test-all: test-image
test-image: ## Push the image to a registry of the test, verify it from another clone, and check it
	$(check) image $(call go-test,-C hack/tools/image) -timeout=40m ./test
