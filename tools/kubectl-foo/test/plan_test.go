// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"example.com/sample-controller/internal/names"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// worlds are namespaces before a plan. settle runs while the controller is running, change runs
// while it is not, and want lists the planned writes.
var worlds = map[string]struct {
	settle, change func(ns namespace)
	want           []string
}{
	"new":     {nil, namespace.withFoo, []string{"create Deployment web", "status"}},
	"settled": {namespace.withReadyFoo, nil, nil},
	"scaled": {namespace.withReadyFoo, func(ns namespace) { ns.patchFoo(`{"spec":{"replicas":3}}`) },
		[]string{"update Deployment web", "status"}},
	"of-others": {namespace.withReadyFoo, func(ns namespace) {
		ns.patchDeployment(`{"metadata":{"labels":{"of":"others"}},"spec":{"minReadySeconds":1}}`)
	}, nil},
	"renamed": {namespace.withReadyFoo, func(ns namespace) { ns.patchFoo(`{"spec":{"deploymentName":"new"}}`) },
		[]string{"create Deployment new", "status"}},
	"taken": {nil, func(ns namespace) {
		ns.kubectl("create", "deployment", "web", "--image=other")
		ns.withFoo()
	}, []string{"leave Deployment web", "status"}},
	"adoption": {nil, func(ns namespace) {
		ns.kubectl("create", "deployment", "web", "--image=other")
		ns.kubectl("annotate", "deployment", "web", samplev1alpha1.AnnotationAdoptBy+"=a")
		ns.withFoo()
	}, []string{"adopt Deployment web", "status"}},
	"terminating": {namespace.withReadyFoo, func(ns namespace) {
		ns.patchFoo(`{"metadata":{"finalizers":["example.com/held"]}}`)
		ns.kubectl("delete", "foo", "a", "--wait=false")
	}, []string{"wait Deployment web", "status"}},
}

// TestTheControllerWritesWhatIsPlanned makes plans of all worlds, then starts the
// controller, and compares its first writes, by the audit log, with the plans.
func TestTheControllerWritesWhatIsPlanned(t *testing.T) {
	namespaces := map[string]namespace{}
	controller := startController(t)
	for name, w := range worlds {
		namespaces[name] = newNamespace(t, "plan-"+name)
		if w.settle != nil {
			w.settle(namespaces[name])
		}
	}
	controller.Stop(limit)
	for name, w := range worlds {
		if w.change != nil {
			w.change(namespaces[name])
		}
	}
	for _, ns := range namespaces { // so that only the controller of Foos still changes anything
		ns.kubectl("rollout", "status", "deployment", "--timeout="+limit.String())
	}

	before := writesInLog(t)
	got := namespaces["new"].foo("plan", "-A", "-o", "json")
	footest.Must(t, got.check(1, "{"))
	if after := writesInLog(t); len(after) != len(before) {
		t.Errorf("plan wrote: %v", after[len(before):])
	}
	var report struct{ Foos []planned }
	footest.Must(t, json.Unmarshal([]byte(got.out), &report))
	plans := map[string]planned{}
	for _, plan := range report.Foos {
		plans[plan.Namespace] = plan
	}

	startController(t)
	for name, ns := range namespaces {
		t.Run(name, func(t *testing.T) {
			said, want := plans[ns.name].lines()
			footest.ExpectEqual(t, "the plan", worlds[name].want, said)
			var got []string
			if err := testcluster.Await(t.Context(), limit, "the controller has written", func(context.Context) error {
				got = requestsIn(writesInLog(t)[len(before):], ns.name)
				if len(got) < len(want) {
					return fmt.Errorf("it wrote %q", got)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			footest.ExpectEqual(t, "the controller's first writes", want, got[:min(len(want), len(got))])
		})
	}
}

// planned is a Foo in the output of plan -o json.
type planned struct {
	Namespace, Name string
	Writes          []struct{ Verb, Kind, Name string }
	Status          any
}

// requests maps planned writes to requests. Other actions send none.
var requests = map[string]string{"create": "create deployments ", "update": "patch deployments ", "adopt": "patch deployments "}

// lines returns what the plan says, and the requests that follow from it.
func (p planned) lines() (said, sent []string) {
	for _, write := range p.Writes {
		said = append(said, write.Verb+" "+write.Kind+" "+write.Name)
		if request := requests[write.Verb]; request != "" {
			sent = append(sent, request+write.Name)
		}
	}
	if p.Status != nil {
		said, sent = append(said, "status"), append(sent, "update foos/status "+p.Name)
	}
	return said, sent
}

// requestsIn returns the controller's requests in a namespace.
func requestsIn(writes []audit.Write, namespace string) []string {
	var requests []string
	for _, write := range writes {
		if write.Manager == names.Controller && write.Namespace == namespace {
			requests = append(requests, write.Verb+" "+write.Path()+" "+write.Name)
		}
	}
	return requests
}

// writesInLog returns all writes of the audit log.
func writesInLog(t *testing.T) []audit.Write {
	t.Helper()
	writes, err := (&audit.Log{Path: auditLog}).Next()
	footest.Must(t, err)
	return slices.DeleteFunc(writes, func(write audit.Write) bool { return write.Resource != "foos" && write.Resource != "deployments" })
}

// TestViewIsEnough runs the commands as a user who has only the role view in a namespace, with the
// rules about Foos that artifacts/deploy adds to that role.
func TestViewIsEnough(t *testing.T) {
	startController(t)
	ns := newNamespace(t, "viewers")
	ns.withReadyFoo()
	ns.kubectl("apply", "-f", "../../../artifacts/deploy/permissions/users.yaml")
	ns.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	footest.Must(t, testcluster.Await(t.Context(), limit, "the role is in force", func(context.Context) error {
		return ns.foo("plan", "--as=viewer").check(0, "Nothing to do: 1 Foo is in its desired state.")
	}))
	ns.kubectl("create", "role", "reader", "--verb=list", "--resource=foos.samplecontroller.k8s.io,deployments.apps")
	ns.kubectl("create", "rolebinding", "reader", "--role=reader", "--user=reader")
	ns.kubectl("create", "role", "half", "--verb=list", "--resource=deployments.apps")
	ns.kubectl("create", "rolebinding", "half", "--role=half", "--user=half")
	for _, err := range []error{
		ns.foo("why", "a", "--as=reader").check(0, "ready: Deployment", "Not shown: the permission to list pods is missing"),
		ns.foo("why", "a", "--as=viewer").check(0, "ready: Deployment", "Pod web-", "Controller: unknown: the Lease",
			"the permission to get leases.coordination.k8s.io is missing"),
		ns.foo("plan", "-A", "--as=viewer").check(2, "the permission to list foos.samplecontroller.k8s.io is missing"),
		ns.foo("ui", "--as=half").check(2, "the permission to list foos.samplecontroller.k8s.io is missing"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}
