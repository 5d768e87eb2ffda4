##@ Demo and timeline

# Passed to the demo, for example -exit.
DEMO_FLAGS ?=

.PHONY: demo
demo: build bin/demo ## Show in a new cluster how a Foo gets running Pods (DEMO_FLAGS=-exit: then scale it, delete it, and exit)
	@bin/demo $(DEMO_FLAGS)

.PHONY: timeline
timeline: build bin/demo ## Draw docs/timeline.svg: a Foo's create, scale and delete in a cluster
	@bin/demo -exit -picture=docs/timeline.svg

bin/demo: FORCE
	@hack/build.sh . ./tools/demo $@
