// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

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
	"replicas-unset": {namespace.withReadyFoo, func(ns namespace) { ns.patchFoo(`{"spec":{"replicas":null}}`) }, []string{"status"}},
	"drifted-image": {namespace.withReadyFoo, func(ns namespace) {
		ns.patchDeployment(`{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"other"}]}}}}`)
	}, []string{"update Deployment web", "status"}},
	"drifted-labels": {namespace.withReadyFoo, func(ns namespace) {
		ns.patchDeployment(`{"spec":{"replicas":4,"template":{"metadata":{"annotations":{"of":"others"}}}}}`)
	}, []string{"update Deployment web", "status"}},
	"of-others": {namespace.withReadyFoo, func(ns namespace) {
		ns.patchDeployment(`{"metadata":{"labels":{"of":"others"}},"spec":{"minReadySeconds":1}}`)
	}, nil},
	"paused": {namespace.withReadyFoo, func(ns namespace) {
		ns.patchDeployment(paused)
		ns.kubectl("wait", "deployment/web", "--for=jsonpath={.status.observedGeneration}=2")
	}, []string{"status"}},
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
	"handed-over": {namespace.withReadyFoo, func(ns namespace) { ns.patchDeployment(`{"metadata":{"ownerReferences":null}}`) },
		[]string{"leave Deployment web", "status"}},
	"terminating": {namespace.withReadyFoo, func(ns namespace) {
		ns.patchFoo(`{"metadata":{"finalizers":["example.com/held"]}}`)
		ns.kubectl("delete", "foo", "a", "--wait=false")
	}, []string{"wait Deployment web", "status"}},
}

// child is a planned child.
type child struct {
	APIVersion string
	audit.Object
}

// announced is a Foo in the output of plan -o json.
type announced struct {
	Namespace, Name string
	Writes          []struct {
		Verb, Kind, Name string
		After            *child
	}
	Status        *audit.Status
	StatusMayWait bool
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
	for name, ns := range namespaces {
		if name != "paused" { // so that only the controller of Foos still changes anything
			ns.kubectl("rollout", "status", "deployment", "--timeout="+limit.String())
		}
	}

	before := writesInLog(t)
	got := namespaces["new"].foo("plan", "-A", "-o", "json")
	footest.Must(t, got.check(1, "{"))
	if after := writesInLog(t); len(after) != len(before) {
		t.Errorf("plan wrote: %v", after[len(before):])
	}
	var report struct{ Foos []announced }
	footest.Must(t, json.Unmarshal([]byte(got.out), &report))

	startController(t)
	for name, ns := range namespaces {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, plan := range report.Foos {
				if plan.Namespace != ns.name {
					continue
				}
				for _, write := range plan.Writes {
					said = append(said, write.Verb+" "+write.Kind+" "+write.Name)
				}
				if plan.Status != nil {
					said = append(said, "status")
				}
				plan.check(t, len(before))
			}
			if want := worlds[name].want; !slices.Equal(said, want) {
				t.Errorf("the plan is %q, not %q", said, want)
			}
		})
	}
}

// verbs maps planned writes to the verbs of requests. Other actions send none.
var verbs = map[string]string{"create": "create", "update": "patch", "adopt": "patch", "delete": "delete"}

// check waits for the planned writes among the controller's writes after the first ones, and
// compares them.
func (p *announced) check(t *testing.T, after int) {
	var want []string
	var sent []*child
	for _, write := range p.Writes {
		if verb := verbs[write.Verb]; verb != "" {
			want, sent = append(want, verb+" deployments "+write.Name), append(sent, write.After)
		}
	}
	if p.Status != nil && !p.StatusMayWait {
		want = append(want, "update foos/status "+p.Name)
	}
	footest.Must(t, testcluster.Await(t.Context(), limit, fmt.Sprintf("the controller has written %q", want), func(context.Context) error {
		if got := p.writes(t, after); len(got) < len(want) {
			return fmt.Errorf("it wrote %q", linesOf(got))
		}
		return nil
	}))
	got := p.writes(t, after)[:len(want)]
	if lines := linesOf(got); !slices.Equal(lines, want) {
		t.Fatalf("the controller wrote %q, the plan said %q", lines, want)
	}
	for i, write := range got {
		switch {
		case i < len(sent) && sent[i] == nil: // a deletion
		case write.Request == nil || write.Response == nil:
			t.Errorf("the log has no bodies of %s %s", write.Verb, write.Name)
		case i == len(sent):
			if !equality.Semantic.DeepEqual(write.Request.Status, *p.Status) {
				t.Errorf("the status sent is %+v, not %+v", write.Request.Status, *p.Status)
			}
		default:
			checkSent(t, sent[i], write)
		}
	}
}

// writes returns the controller's writes for the Foo. If a namespace has two Foos, neither has
// writes of Deployments.
func (p *announced) writes(t *testing.T, after int) []audit.Write {
	var writes []audit.Write
	for _, write := range writesInLog(t)[after:] {
		if write.Manager == names.Controller && write.Namespace == p.Namespace && (write.Resource == "deployments" || write.Name == p.Name && write.Resource == "foos") {
			writes = append(writes, write)
		}
	}
	return writes
}

func linesOf(writes []audit.Write) []string {
	lines := []string{}
	for _, write := range writes {
		lines = append(lines, write.Verb+" "+write.Path()+" "+write.Name)
	}
	return lines
}

// checkSent compares a planned child with the one that was sent, which is in the log with defaults,
// or with the result of a patch.
func checkSent(t *testing.T, planned *child, write audit.Write) {
	t.Helper()
	probe, err := json.Marshal(map[string]any{
		"apiVersion": planned.APIVersion, "kind": planned.Kind, "metadata": map[string]string{"generateName": "as-planned-"}, "spec": planned.Spec,
	})
	footest.Must(t, err)
	ns := namespace{t, write.Namespace}
	var stored child
	footest.Must(t, json.Unmarshal([]byte(ns.kubectl("create", "--dry-run=server", "-o", "json", "-f", ns.file(string(probe)))), &stored))
	sent := write.Request
	if write.Verb == "patch" {
		sent = write.Response // the result of the patch
	}
	for what, values := range map[string][2]any{
		"spec":             {stored.Spec, sent.Spec},
		"labels":           {planned.Metadata.Labels, sent.Metadata.Labels},
		"annotations":      {planned.Metadata.Annotations, sent.Metadata.Annotations},
		"owner references": {planned.Metadata.OwnerReferences, sent.Metadata.OwnerReferences},
		"resourceVersion":  {planned.Metadata.ResourceVersion, write.Request.Metadata.ResourceVersion},
		"UID":              {planned.Metadata.UID, write.Request.Metadata.UID},
		"finalizers":       {planned.Metadata.Finalizers, sent.Metadata.Finalizers},
	} {
		if !equality.Semantic.DeepEqual(values[0], values[1]) {
			t.Errorf("the %s sent are\n%v\nnot\n%v", what, values[1], values[0])
		}
	}
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
	ns.awaitPartsOfThePage("--as=reader")
}
