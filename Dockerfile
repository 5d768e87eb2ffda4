# For those who build images with Docker or Podman; "make image" makes the same one with Go alone, and a test holds the
# two together.
#
#   docker build --tag sample-controller .
#   docker build --platform linux/amd64,linux/arm64 --tag sample-controller .
#
# The program knows its commit, as long as the build context has .git (of an address, BuildKit takes it along with
# --build-arg BUILDKIT_CONTEXT_KEEP_GIT_DIR=1). For the image to tell it, too:
#
#   --label org.opencontainers.image.revision="$(git rev-parse HEAD)"
#
# For Go's FIPS 140-3 module in the program: --build-arg GOFIPS140=v1.0.0
#
# A tag can move. "docker buildx imagetools inspect golang:1.26.11" prints the digest that it has now, and this pins it:
# --build-arg GO_IMAGE=golang:1.26.11@sha256:...

# The release is that of the line toolchain in go.mod.
ARG GO_IMAGE=golang:1.26.11
FROM --platform=$BUILDPLATFORM $GO_IMAGE AS build
WORKDIR /src
ARG TARGETOS TARGETARCH
ARG GOFIPS140=off
# The sources are only looked at, so a change of them costs no copy; modules and compiled packages stay for the next build.
RUN --mount=type=bind,target=/src \
    --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    export GOOS="${TARGETOS}" GOARCH="${TARGETARCH}" GOFIPS140="${GOFIPS140}" && \
    hack/build.sh -release . . /out/sample-controller && hack/licenses.sh . /out/licenses

FROM scratch
LABEL org.opencontainers.image.title="sample-controller" \
      org.opencontainers.image.description="Kubernetes controller for Foos" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://example.com/sample-controller"
COPY --from=build /out /
# By number: the kubelet can't tell from a name that it isn't root.
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/sample-controller"]
