##@ Demo and timeline

# Passed to the demo, for example -exit.
DEMO_FLAGS ?=

.PHONY: demo
demo: build bin/demo ## Show in a new cluster how a Foo gets running Pods (DEMO_FLAGS=-exit: then scale it, delete it, and exit)
	@bin/demo $(DEMO_FLAGS)

# It starts the page of the kubectl plugin, where there is one.
ifneq ($(wildcard tools/kubectl-foo),)
demo: bin/kubectl-foo
endif

.PHONY: timeline
timeline: build bin/demo ## Draw docs/timeline.svg: a Foo's create, scale and delete in a cluster
	@bin/demo -exit -picture=docs/timeline.svg

bin/demo: FORCE
	@hack/build.sh . ./tools/demo $@
