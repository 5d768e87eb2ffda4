##@ Demo and timeline

# Passed to the demo: -exit.
DEMO_FLAGS ?=

# In a new cluster, whose audit log contains the bodies of writes to Foos and the objects below them.
in-cluster := @bin/devcluster run -audit-bodies=foos.samplecontroller.k8s.io,deployments.apps,replicasets.apps,pods --

.PHONY: demo
demo: build bin/kubectl-foo ## Show in a new cluster how a Foo becomes running Pods (DEMO_FLAGS=-exit: then scale it, delete it, and exit)
	$(in-cluster) tools/demo/demo.sh $(DEMO_FLAGS)

.PHONY: timeline
timeline: build bin/kubectl-foo ## Draw docs/timeline.svg: a Foo's create, scale and delete in a cluster
	$(in-cluster) tools/demo/demo.sh -exit docs/timeline.svg
