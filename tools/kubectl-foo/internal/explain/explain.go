// SPDX-License-Identifier: Apache-2.0

// Package explain says why a Foo is as it is, from objects that were read. It reads
// nothing itself.
package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/preview"
)

// Subject is a Foo with all that explains it.
type Subject struct {
	Foo   *samplev1alpha1.Foo
	Table []preview.Row
	World *preview.World
	Below *cluster.Below
	// Lease is the controller's, or LeaseErr is why it could not be read. LeaseName is
	// NAMESPACE/NAME.
	Lease     *coordinationv1.Lease
	LeaseErr  error
	LeaseName string
	Now       time.Time
}

// Finding is something to know, and what the reader can do about it, if anything.
type Finding struct {
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"`
}

// Explanation is why a Foo is as it is.
type Explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// State is the condition Ready in words, and Since its age.
	State    Finding   `json:"state"`
	Since    string    `json:"since,omitempty"`
	Findings []Finding `json:"findings,omitempty"` // about the Foo itself
	// Controller is whether a controller is working.
	Controller Finding      `json:"controller"`
	Has        []Node       `json:"has"`
	Next       *report.Sync `json:"next"`
	Owners     []Owned      `json:"owners,omitempty"`
	Events     []Event      `json:"events,omitempty"`
	// Missing are the permissions that the account lacks.
	Missing []string `json:"missing,omitempty"`

	plan *report.Plan
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
	plan := &report.Plan{Sync: preview.Of(s.Table, s.Foo, s.World, metav1.NewTime(s.Now))}
	next, err := plan.Structured()
	if err != nil {
		return nil, err
	}
	e := &Explanation{Namespace: s.Foo.Namespace, Name: s.Foo.Name, Controller: s.Controller(), Has: s.tree(), Next: next, plan: plan}
	s.addState(e)
	if e.Owners, err = s.owners(); err != nil {
		return nil, err
	}
	for _, event := range s.events() {
		e.Events = append(e.Events, Event{
			s.age(lastSeen(event)), event.Type, event.InvolvedObject.Kind + " " + event.InvolvedObject.Name, event.Reason, event.Message,
		})
	}
	for _, missing := range s.Below.Missing {
		e.Missing = append(e.Missing, missing.Error())
	}
	return e, nil
}

// addState adds what the Foo's condition says.
func (s *Subject) addState(e *Explanation) {
	condition := meta.FindStatusCondition(s.Foo.Status.Conditions, samplev1alpha1.ConditionReady)
	if condition == nil || condition.Reason == samplev1alpha1.ReasonPending {
		e.State = Finding{Text: "no controller has synced it"}
	} else {
		e.State = Finding{report.Ready(s.Foo.Status), ""}
		if condition.Status != metav1.ConditionTrue {
			e.State.Advice = adviceAbout(condition.Message, s.Foo.Namespace)
		}
		e.Since = s.age(condition.LastTransitionTime.Time)
		if condition.ObservedGeneration != s.Foo.Generation {
			e.Findings = append(e.Findings, Finding{Text: fmt.Sprintf(
				"this is of generation %d, but the spec is of generation %d: the controller has not seen that yet", condition.ObservedGeneration, s.Foo.Generation)})
		}
	}
	if finding := s.deletion("foo", s.Foo); finding != nil {
		e.Findings = append(e.Findings, *finding)
	}
}

// Controller says whether a controller is working, by its Lease.
func (s *Subject) Controller() Finding {
	namespace, _, _ := strings.Cut(s.LeaseName, "/")
	start := fmt.Sprintf("nothing changes until one runs; see: kubectl get pods -n %s", namespace)
	switch {
	case apierrors.IsNotFound(s.LeaseErr):
		return Finding{"unknown: there is no Lease " + s.LeaseName, "a controller without -leader-elect has none; for another Lease, set --lease-namespace and --lease-name"}
	case s.LeaseErr != nil:
		return Finding{fmt.Sprintf("unknown: the Lease %s can't be read: %v", s.LeaseName, s.LeaseErr), ""}
	case s.Lease.Spec.HolderIdentity == nil || *s.Lease.Spec.HolderIdentity == "":
		return Finding{"not running: nobody holds the Lease " + s.LeaseName, start}
	case s.isStale():
		return Finding{fmt.Sprintf("not running: its Lease %s was last renewed %s ago", s.LeaseName, s.age(s.Lease.Spec.RenewTime.Time)), start}
	}
	return Finding{fmt.Sprintf("%s, which renewed its Lease %s ago", *s.Lease.Spec.HolderIdentity, s.age(s.Lease.Spec.RenewTime.Time)), ""}
}

func (s *Subject) isStale() bool {
	renewed, valid := s.Lease.Spec.RenewTime, s.Lease.Spec.LeaseDurationSeconds
	return renewed == nil || valid == nil || s.Now.Sub(renewed.Time) > time.Duration(*valid)*time.Second
}

// deletion says what holds up the deletion of an object, or returns nil.
func (s *Subject) deletion(resource string, object metav1.Object) *Finding {
	deleted := object.GetDeletionTimestamp()
	if deleted == nil {
		return nil
	}
	found := &Finding{Text: "it has been in deletion for " + s.age(deleted.Time)}
	finalizers := slices.Clone(object.GetFinalizers())
	for _, collector := range []struct{ finalizer, does string }{
		{metav1.FinalizerDeleteDependents, "deleted what it owns"}, {metav1.FinalizerOrphanDependents, "released what it owns"},
	} {
		if i := slices.Index(finalizers, collector.finalizer); i >= 0 {
			finalizers = slices.Delete(finalizers, i, i+1)
			found.Text += ", and stays until the garbage collector has " + collector.does
		}
	}
	if len(finalizers) > 0 {
		found.Text += ", and stays until somebody removes the finalizers " + strings.Join(finalizers, ", ")
		found.Advice = fmt.Sprintf("find out whose they are, and why these do not remove them; to see them: kubectl get %s -n %s %s -o jsonpath='{.metadata.finalizers}'",
			resource, object.GetNamespace(), object.GetName())
	}
	return found
}

// events returns the Events about the Foo's objects, the newest first.
func (s *Subject) events() []*corev1.Event {
	about := map[types.UID]bool{s.Foo.UID: true}
	for _, row := range s.Table {
		for _, child := range s.World.ControlledBy(row.Resource, s.Foo) {
			about[child.GetUID()] = true
			s.addBelow(about, child.GetUID())
		}
	}
	var events []*corev1.Event
	for _, event := range s.Below.Events {
		if about[event.InvolvedObject.UID] {
			events = append(events, event)
		}
	}
	slices.SortStableFunc(events, func(a, b *corev1.Event) int { return lastSeen(b).Compare(lastSeen(a)) })
	return events
}

// lastSeen returns when an Event was last counted.
func lastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

func (s *Subject) age(since time.Time) string {
	return duration.HumanDuration(s.Now.Sub(since))
}

// Print prints an explanation for people. At most maxEvents Events fit on a screen.
func (e *Explanation) Print(printer *report.Printer, maxEvents int) error {
	out := &screen{printer, map[string]bool{}}
	out.Printf("Foo %s/%s\n", e.Namespace, e.Name)
	since := ""
	if e.Since != "" {
		since = ", for " + e.Since
	}
	out.finding("  ", Finding{e.State.Text + since, e.State.Advice})
	for _, finding := range e.Findings {
		out.finding("  ! ", finding)
	}
	out.finding("  Controller: ", e.Controller)
	out.Printf("\nWhat it has:\n")
	if len(e.Has) == 0 {
		out.Printf("  nothing\n")
	}
	out.nodes(e.Has, "  ")
	if e.plan.IsSilent() {
		out.Printf("\nThe next sync writes nothing.\n")
	} else {
		out.Printf("\nThe next sync:\n")
		_ = report.PrintSteps(printer, e.plan) // the printer remembers the error
	}
	for _, owned := range e.Owners {
		owned.print(printer)
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
	out.Printf("\nEvents, the newest first:\n")
	for _, event := range e.Events[:min(len(e.Events), most)] {
		out.Printf("  %-5s %-8s %s: %s: %s\n", event.Age, event.Type, event.Object, event.Reason, event.Message)
	}
	if more := len(e.Events) - most; more > 0 {
		out.Printf("  and %d more\n", more)
	}
}

// screen prints each advice once.
type screen struct {
	*report.Printer

	advised map[string]bool
}

// finding prints a finding, and new advice in a line of its own.
func (s *screen) finding(indent string, finding Finding) {
	s.Printf("%s%s\n", indent, finding.Text)
	if finding.Advice == "" || s.advised[finding.Advice] {
		return
	}
	s.advised[finding.Advice] = true
	margin := len(indent) - len(strings.TrimLeft(indent, " "))
	s.Printf("%s-> %s\n", strings.Repeat(" ", margin+2), finding.Advice)
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

// found returns what a condition or a container says, with advice.
func found(reason, message, namespace string) Finding {
	return Finding{reason + ": " + message, adviceAbout(reason+": "+message, namespace)}
}

// advice is what a user can do about a failure that a text tells of. %s is the namespace.
var advice = []struct{ text, do string }{
	{"exceeded quota", "lower spec.replicas, or ask for a larger quota: kubectl describe resourcequota -n %s"},
	{"failed calling webhook", "the webhook is down or slow; whoever runs it has to repair it, and the controller then goes on by itself: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"},
	{"denied the request", "a policy or webhook of the cluster refuses this; its owner can say why"},
	{"ValidatingAdmissionPolicy", "a policy of the cluster refuses this: kubectl get validatingadmissionpolicies"},
	{"InvalidImageName", "the controller's flag -image names no image"},
	{"ErrImage", "see whether the image exists and the nodes may pull it; the controller's flag -image names it"},
	{"ImagePull", "see whether the image exists and the nodes may pull it; the controller's flag -image names it"},
	{"Unschedulable", "see what the nodes have left: kubectl describe nodes"},
	{"FailedCreate", "the events of the ReplicaSet say more: kubectl get events -n %s"},
	{"ProgressDeadlineExceeded", "what its Pods wait for is below, and in: kubectl get events -n %s"},
}

// adviceAbout returns what a user can do, or "".
func adviceAbout(text, namespace string) string {
	for _, a := range advice {
		if !strings.Contains(text, a.text) {
			continue
		}
		if strings.Contains(a.do, "%s") {
			return fmt.Sprintf(a.do, namespace)
		}
		return a.do
	}
	return ""
}
