##@ Demo and timeline

# Passed to the demo, for example -exit.
DEMO_FLAGS ?=

# In a new cluster, whose audit log contains the bodies of writes to Foos and the objects below them.
in-cluster := @bin/devcluster run -audit-bodies=foos.samplecontroller.k8s.io,deployments.apps,replicasets.apps,pods --

.PHONY: demo
demo: build bin/demo ## Show in a new cluster how a Foo becomes running Pods (DEMO_FLAGS=-exit: then scale it, delete it, and exit)
	$(in-cluster) bin/demo $(DEMO_FLAGS)

# The demo starts the page of the kubectl plugin, if that exists.
ifneq ($(wildcard tools/kubectl-foo),)
demo: bin/kubectl-foo
endif

.PHONY: timeline
timeline: build bin/demo ## Draw docs/timeline.svg: a Foo's create, scale and delete in a cluster
	$(in-cluster) bin/demo -exit -picture=docs/timeline.svg

bin/demo: FORCE
	@hack/build.sh . ./tools/demo $@
