// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/internal/names"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/audit"
)

// world is a namespace before a plan. settle is done while the controller runs, change
// while it does not.
type world struct {
	settle, change func(t *testing.T, ns namespace)
	// want are the announced writes.
	want []string
}

var worlds = map[string]world{
	"new":            {nil, withFoo, []string{"create Deployment web", "status"}},
	"as-asked":       {withFoo, nil, nil},
	"scaled":         {withFoo, func(t *testing.T, ns namespace) { ns.patchFoo(t, "a", `{"spec":{"replicas":3}}`) }, []string{"update Deployment web", "status"}},
	"replicas-unset": {withFoo, func(t *testing.T, ns namespace) { ns.patchFoo(t, "a", `{"spec":{"replicas":null}}`) }, []string{"status"}},
	"drifted-image": {withFoo, func(t *testing.T, ns namespace) {
		ns.patchDeployment(t, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"other"}]}}}}`)
	}, []string{"update Deployment web", "status"}},
	"drifted-labels": {withFoo, func(t *testing.T, ns namespace) {
		ns.patchDeployment(t, "web", `{"spec":{"replicas":4,"template":{"metadata":{"annotations":{"of":"others"}}}}}`)
	}, []string{"update Deployment web", "status"}},
	"of-others": {withFoo, func(t *testing.T, ns namespace) {
		ns.patchDeployment(t, "web", `{"metadata":{"labels":{"of":"others"}},"spec":{"minReadySeconds":1}}`)
	}, nil},
	"paused": {withFoo, func(t *testing.T, ns namespace) {
		ns.patchDeployment(t, "web", `{"spec":{"paused":true,"template":{"metadata":{"annotations":{"of":"others"}}}}}`)
	}, []string{"status"}},
	"renamed": {withFoo, func(t *testing.T, ns namespace) { ns.patchFoo(t, "a", `{"spec":{"deploymentName":"new"}}`) },
		[]string{"create Deployment new", "status"}},
	"renamed-to-a-taken-name": {withFoo, func(t *testing.T, ns namespace) {
		ns.createDeployment(t, "taken", nil)
		ns.patchFoo(t, "a", `{"spec":{"deploymentName":"taken"}}`)
	}, []string{"leave Deployment taken", "status"}},
	"taken": {nil, func(t *testing.T, ns namespace) {
		ns.createDeployment(t, "web", nil)
		withFoo(t, ns)
	}, []string{"leave Deployment web", "status"}},
	"taken-by-a-foo": {withFoo, func(t *testing.T, ns namespace) { ns.create(t, "b", "web", 1) }, []string{"leave Deployment web", "status"}},
	"adoption": {nil, func(t *testing.T, ns namespace) {
		ns.createDeployment(t, "web", func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{samplev1alpha1.AnnotationAdoptBy: "a"}
		})
		withFoo(t, ns)
	}, []string{"adopt Deployment web", "status"}},
	"handed-over": {withFoo, func(t *testing.T, ns namespace) {
		ns.patchDeployment(t, "web", `{"metadata":{"ownerReferences":null}}`)
	}, []string{"leave Deployment web", "status"}},
	"deleted": {withFoo, func(t *testing.T, ns namespace) {
		must(t, env.kube.AppsV1().Deployments(string(ns)).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
		awaitGone(t, "the Deployment", func(ctx context.Context) error {
			_, err := env.kube.AppsV1().Deployments(string(ns)).Get(ctx, "web", metav1.GetOptions{})
			return err
		})
	}, []string{"create Deployment web", "status"}},
	"terminating": {withFoo, func(t *testing.T, ns namespace) {
		ns.patchFoo(t, "a", `{"metadata":{"finalizers":["example.com/held"]}}`)
		must(t, env.foo.SamplecontrollerV1alpha1().Foos(string(ns)).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	}, []string{"wait Deployment web", "status"}},
}

func withFoo(t *testing.T, ns namespace) {
	t.Helper()
	ns.create(t, "a", "web", 2)
}

// announced is a Foo of plan -o json.
type announced struct {
	Namespace, Name string
	Writes          []struct {
		Verb, Kind, Name string
		After            *appsv1.Deployment
	}
	Status        *samplev1alpha1.FooStatus
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
			w.settle(t, namespaces[name])
		}
	}
	for name, w := range worlds {
		if w.settle != nil {
			namespaces[name].awaitReady(t, "a")
		}
	}
	controller.Stop(limit)
	for name, w := range worlds {
		if w.change != nil {
			w.change(t, namespaces[name])
		}
	}
	for _, ns := range namespaces {
		ns.awaitRest(t)
	}

	before := writesInLog(t)
	got := foo(t, "plan", "-A", "-o", "json")
	if got.code != 1 {
		t.Fatalf("the exit code is %d, with changes:\n%s", got.code, got.errOut)
	}
	if after := writesInLog(t); len(after) != len(before) {
		t.Errorf("plan wrote: %v", after[len(before):])
	}
	var report struct{ Foos []announced }
	must(t, json.Unmarshal([]byte(got.out), &report))
	expected := expectedOf(t, report.Foos, namespaces)

	startController(t)
	for name, foos := range expected {
		for _, plan := range foos {
			t.Run(name+"/"+plan.Name, func(t *testing.T) { plan.check(t, len(before)) })
		}
	}
}

// expectedOf returns the plans of each world, and checks that they say what the world is
// there for.
func expectedOf(t *testing.T, foos []announced, namespaces map[string]namespace) map[string][]announced {
	t.Helper()
	expected := map[string][]announced{}
	for name, ns := range namespaces {
		var said []string
		for _, plan := range foos {
			if plan.Namespace != string(ns) {
				continue
			}
			expected[name] = append(expected[name], plan)
			for _, write := range plan.Writes {
				said = append(said, write.Verb+" "+write.Kind+" "+write.Name)
			}
			if plan.Status != nil {
				said = append(said, "status")
			}
		}
		if !slices.Equal(said, worlds[name].want) {
			t.Errorf("%s: the plan is %q, not %q", name, said, worlds[name].want)
		}
	}
	return expected
}

// check waits for the announced writes among those of the controller after the first
// ones, and compares them.
func (p *announced) check(t *testing.T, after int) {
	want := p.lines()
	await(t, fmt.Sprintf("the controller has written %q", want), func(context.Context) error {
		if got := p.writes(t, after); len(got) < len(want) {
			return fmt.Errorf("it wrote %q", linesOf(got))
		}
		return nil
	})
	got := p.writes(t, after)
	if lines := linesOf(got[:len(want)]); !slices.Equal(lines, want) {
		t.Fatalf("the controller wrote %q, the plan said %q", lines, want)
	}
	next := 0
	for _, write := range p.Writes {
		if write.Verb == "leave" || write.Verb == "wait" {
			continue
		}
		if write.After != nil {
			checkSent(t, write.After, got[next])
		}
		next++
	}
	if p.Status != nil && !p.StatusMayWait {
		checkStatus(t, p.Status, got[next])
	}
}

func (p *announced) lines() []string {
	var lines []string
	for _, write := range p.Writes {
		switch write.Verb {
		case "leave", "wait":
		case "update", "adopt":
			lines = append(lines, "patch deployments "+write.Name)
		default:
			lines = append(lines, write.Verb+" deployments "+write.Name)
		}
	}
	if p.Status != nil && !p.StatusMayWait {
		lines = append(lines, "update foos/status "+p.Name)
	}
	return lines
}

// writes returns what the controller has written for the Foo. Of two Foos in a namespace,
// none writes a Deployment.
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

// checkSent compares a planned Deployment with the one that was sent, which the log has with
// defaults, or with what a patch made.
func checkSent(t *testing.T, planned *appsv1.Deployment, write audit.Write) {
	t.Helper()
	probe := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{GenerateName: "as-planned-"}, Spec: planned.Spec}
	stored, err := env.kube.AppsV1().Deployments(write.Namespace).Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, err)
	if write.Request == nil || write.Response == nil {
		t.Fatalf("the log has no bodies of %s %s", write.Verb, write.Name)
	}
	sent := write.Response // what a patch made
	if write.Verb != "patch" {
		sent = write.Request
	}
	for what, values := range map[string][2]any{
		"spec":             {asJSON(t, stored.Spec), asJSON(t, sent.Spec)},
		"labels":           {planned.Labels, sent.Metadata.Labels},
		"annotations":      {planned.Annotations, sent.Metadata.Annotations},
		"owner references": {planned.OwnerReferences, sent.Metadata.OwnerReferences},
		"resourceVersion":  {planned.ResourceVersion, write.Request.Metadata.ResourceVersion},
		"UID":              {planned.UID, write.Request.Metadata.UID},
		"finalizers":       {planned.Finalizers, sent.Metadata.Finalizers},
	} {
		if !equality.Semantic.DeepEqual(values[0], values[1]) {
			t.Errorf("the %s sent are\n%v\nnot\n%v", what, values[1], values[0])
		}
	}
}

func checkStatus(t *testing.T, planned *samplev1alpha1.FooStatus, write audit.Write) {
	t.Helper()
	if write.Request == nil {
		t.Fatal("the log has no body of the status")
	}
	var want, got []audit.Condition
	for _, c := range planned.Conditions {
		want = append(want, audit.Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message})
	}
	got = append(got, write.Request.Status.Conditions...)
	if !slices.Equal(got, want) || int(planned.AvailableReplicas) != ptr.Deref(write.Request.Status.AvailableReplicas, 0) {
		t.Errorf("the status sent is %+v, not %+v", write.Request.Status, planned)
	}
}

func asJSON(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	must(t, err)
	var decoded any
	must(t, json.Unmarshal(data, &decoded))
	return decoded
}

// writesInLog returns all writes of the audit log.
func writesInLog(t *testing.T) []audit.Write {
	t.Helper()
	file, err := os.Open(env.AuditLog())
	must(t, err)
	defer file.Close()
	var writes []audit.Write
	_, err = audit.Read(file, func(write audit.Write) {
		if write.Resource == "foos" || write.Resource == "deployments" {
			writes = append(writes, write)
		}
	})
	must(t, err)
	return writes
}
