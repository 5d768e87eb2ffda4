// SPDX-License-Identifier: Apache-2.0

// Package explain explains a Foo's current state from objects that the caller has read.
package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/preview"
)

// Subject is a Foo with everything that explains it.
type Subject struct {
	Owner plan.Owner
	Kind  *plan.Kind
	preview.World

	// Missing holds an error for each resource that the account may not read.
	Missing []error
	Lease   cluster.Lease
	Now     time.Time
}

// Read sets the owner of a kind with a name, and everything that explains it but the Lease.
func (s *Subject) Read(ctx context.Context, c *cluster.Cluster, kind *plan.Kind, name string) error {
	owners, err := c.ListOwners(ctx, kind, name)
	if err != nil {
		return err
	}
	if len(owners) == 0 {
		return c.NoOwner(kind, name)
	}
	s.Kind, s.Owner = kind, owners[0]
	s.World, s.Missing, err = c.Find(ctx, slices.Concat(cluster.Kinds{kind}.Owners(), cluster.Kinds{kind}.Explaining()))
	return err
}

// Finding is a fact, with advice on what the reader can do about it, if anything.
type Finding struct {
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"`
}

// Explanation explains a Foo's current state.
type Explanation struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// State is the condition Ready in words, and Since its age.
	State    Finding   `json:"state"`
	Since    string    `json:"since,omitempty"`
	Findings []Finding `json:"findings,omitempty"` // about the Foo itself
	// Controller tells whether a controller is running.
	Controller Controller   `json:"controller"`
	Has        []Node       `json:"has"`
	Next       *report.Plan `json:"next"`
	Events     []Event      `json:"events,omitempty"`
	// Missing lists the permissions that the account lacks.
	Missing []string `json:"missing,omitempty"`
}

// Event is an Event about one of the Foo's objects.
type Event struct {
	Age     string `json:"age"`
	Type    string `json:"type"`
	Object  string `json:"object"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Of explains a Foo.
func Of(s *Subject) (*Explanation, error) {
	next, err := report.NewPlan(preview.Of(s.Kind, s.Owner, s.World, metav1.NewTime(s.Now)))
	if err != nil {
		return nil, err
	}
	has, events := s.tree()
	e := &Explanation{Kind: s.Kind.Name, Namespace: s.Owner.GetNamespace(), Name: s.Owner.GetName(), Controller: s.Controller(), Has: has, Next: next}
	s.addState(e)
	for _, event := range newestFirst(events) {
		e.Events = append(e.Events, Event{
			s.age(lastSeen(event)), event.Type, event.InvolvedObject.Kind + " " + event.InvolvedObject.Name, event.Reason, event.Message,
		})
	}
	for _, missing := range s.Missing {
		e.Missing = append(e.Missing, missing.Error())
	}
	e.adviseOnce()
	return e, nil
}

// adviseOnce removes advice that an earlier finding has.
func (e *Explanation) adviseOnce() {
	said := map[string]bool{}
	check := func(findings []Finding) {
		for i, finding := range findings {
			if said[finding.Advice] {
				findings[i].Advice = ""
			}
			said[finding.Advice] = true
		}
	}
	var checkNodes func(nodes []Node)
	checkNodes = func(nodes []Node) {
		for _, node := range nodes {
			check(node.Waits)
			checkNodes(node.Below)
		}
	}
	said[e.State.Advice], said[e.Controller.Advice] = true, true
	check(e.Findings)
	checkNodes(e.Has)
}

// addState adds the state that the Foo's conditions report.
func (s *Subject) addState(e *Explanation) {
	condition := meta.FindStatusCondition(s.Owner.GetConditions(), samplev1alpha1.ConditionReady)
	if condition == nil || condition.Reason == samplev1alpha1.ReasonPending {
		e.State = Finding{Text: "no controller has synced it yet"}
	} else {
		e.State = Finding{report.Ready(s.Owner), ""}
		if condition.Status != metav1.ConditionTrue {
			e.State.Advice = adviceAbout(condition.Message, s.Owner.GetNamespace())
		}
		e.Since = s.age(condition.LastTransitionTime.Time)
		if condition.ObservedGeneration != s.Owner.GetGeneration() {
			e.Findings = append(e.Findings, Finding{Text: fmt.Sprintf(
				"this status describes generation %d of the spec, which is now at generation %d: the controller has not synced the change yet", condition.ObservedGeneration, s.Owner.GetGeneration())})
		}
	}
	for _, row := range s.Kind.Children {
		if own := meta.FindStatusCondition(s.Owner.GetConditions(), row.Condition); row.Condition != "" && own != nil {
			e.Findings = append(e.Findings, Finding{Text: fmt.Sprintf("%s is %s, %s, for %s: %s", own.Type, own.Status, own.Reason, s.age(own.LastTransitionTime.Time), own.Message)})
		}
	}
	if finding := s.deletion(s.Kind.Resource.Resource, s.Owner); finding != nil {
		e.Findings = append(e.Findings, *finding)
	}
}

// Controller tells whether a controller is running.
type Controller struct {
	Finding

	// State is running, stopped or unknown.
	State string `json:"state"`
}

// Controller uses the Lease to find out whether a controller is running.
func (s *Subject) Controller() Controller {
	lease, name := s.Lease.Lease, s.Lease.Name.String()
	stopped := func(text string) Controller {
		return Controller{Finding{"not running: " + text, "nothing changes until a controller runs; check its Pods: kubectl get pods -n " + s.Lease.Name.Namespace}, "stopped"}
	}
	switch err := s.Lease.Err; {
	case apierrors.IsNotFound(err):
		return Controller{Finding{"unknown: there is no Lease " + name,
			"a controller without -leader-elect has no Lease; if yours has another name, set --lease-namespace and --lease-name"}, "unknown"}
	case err != nil:
		return Controller{Finding{Text: fmt.Sprintf("unknown: the Lease %s can't be read: %v", name, err)}, "unknown"}
	case ptr.Deref(lease.Spec.HolderIdentity, "") == "":
		return stopped("the Lease " + name + " has no holder")
	case s.Now.Sub(lease.Spec.RenewTime.Time) > time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second:
		return stopped(fmt.Sprintf("its Lease %s was last renewed %s ago", name, s.age(lease.Spec.RenewTime.Time)))
	}
	return Controller{Finding{Text: fmt.Sprintf("%s, which renewed its Lease %s ago", *lease.Spec.HolderIdentity, s.age(lease.Spec.RenewTime.Time))}, "running"}
}

// deletion explains what blocks the deletion of an object, or returns nil.
func (s *Subject) deletion(resource string, object metav1.Object) *Finding {
	deleted := object.GetDeletionTimestamp()
	if deleted == nil {
		return nil
	}
	found := &Finding{Text: "it has been terminating for " + s.age(deleted.Time)}
	finalizers := slices.Clone(object.GetFinalizers())
	for _, collector := range []struct{ finalizer, does string }{
		{metav1.FinalizerDeleteDependents, "deleted its dependents"}, {metav1.FinalizerOrphanDependents, "orphaned its dependents"},
	} {
		if i := slices.Index(finalizers, collector.finalizer); i >= 0 {
			finalizers = slices.Delete(finalizers, i, i+1)
			found.Text += "; it remains until the garbage collector has " + collector.does
		}
	}
	if len(finalizers) > 0 {
		found.Text += "; it remains until these finalizers are removed: " + strings.Join(finalizers, ", ")
		found.Advice = fmt.Sprintf("find out which controllers own the finalizers, and why they have not removed them: kubectl get %s -n %s %s -o jsonpath='{.metadata.finalizers}'",
			resource, object.GetNamespace(), object.GetName())
	}
	return found
}

func newestFirst(events []*corev1.Event) []*corev1.Event {
	return slices.SortedFunc(slices.Values(events), func(a, b *corev1.Event) int {
		return cmp.Or(lastSeen(b).Compare(lastSeen(a)), strings.Compare(a.Name, b.Name))
	})
}

// lastSeen returns the time of an Event's last occurrence.
func lastSeen(event *corev1.Event) time.Time {
	seen := []time.Time{event.CreationTimestamp.Time, event.LastTimestamp.Time, event.EventTime.Time}
	if event.Series != nil {
		seen = append(seen, event.Series.LastObservedTime.Time)
	}
	return slices.MaxFunc(seen, time.Time.Compare)
}

func (s *Subject) age(since time.Time) string {
	return duration.HumanDuration(s.Now.Sub(since))
}

// Print prints an explanation as text, with at most maxEvents Events.
func (e *Explanation) Print(printer *report.Printer, maxEvents int) error {
	out := &screen{printer}
	out.Printf("%s %s/%s\n", e.Kind, e.Namespace, e.Name)
	since := ""
	if e.Since != "" {
		since = ", for " + e.Since
	}
	out.finding("  ", Finding{e.State.Text + since, e.State.Advice})
	for _, finding := range e.Findings {
		out.finding("  ! ", finding)
	}
	out.finding("  Controller: ", e.Controller.Finding)
	out.Printf("\nOwned objects:\n")
	if len(e.Has) == 0 {
		out.Printf("  none\n")
	}
	out.nodes(e.Has, "  ")
	if e.Next.IsSilent() {
		out.Printf("\nThe next sync writes nothing.\n")
	} else {
		out.Printf("\nThe next sync:\n")
		e.Next.PrintSteps(printer)
	}
	e.printEvents(out, maxEvents)
	for _, missing := range e.Missing {
		out.Printf("\nNot shown: %s\n", missing)
	}
	return printer.Err()
}

func (e *Explanation) printEvents(out *screen, most int) {
	if len(e.Events) == 0 {
		return
	}
	out.Printf("\nEvents, newest first:\n")
	for _, event := range e.Events[:min(len(e.Events), most)] {
		out.Printf("  %-5s %-8s %s: %s: %s\n", event.Age, event.Type, event.Object, event.Reason, event.Message)
	}
	if more := len(e.Events) - most; more > 0 {
		out.Printf("  and %d more\n", more)
	}
}

// screen prints the parts of an explanation.
type screen struct{ *report.Printer }

// finding prints a finding and, on the next line, advice.
func (s *screen) finding(indent string, finding Finding) {
	s.Printf("%s%s\n", indent, finding.Text)
	if finding.Advice != "" {
		margin := len(indent) - len(strings.TrimLeft(indent, " "))
		s.Printf("%s-> %s\n", strings.Repeat(" ", margin+2), finding.Advice)
	}
}

func (s *screen) nodes(nodes []Node, indent string) {
	for _, n := range nodes {
		s.Printf("%s%s %s  %s\n", indent, n.Kind, n.Name, n.State)
		for _, wait := range n.Waits {
			s.finding(indent+"  ! ", wait)
		}
		s.nodes(n.Below, indent+"  ")
	}
}
