// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/preview"
)

// settled returns a Foo in its desired state, and a running controller.
func settled(now time.Time) (*Subject, *appsv1.Deployment) {
	renewed, holder, valid := metav1.NewMicroTime(now.Add(-time.Second)), "one", int32(15)
	deployment := footest.Deployment("a")
	world := preview.World{}
	world.Add(appsv1.SchemeGroupVersion.WithResource("deployments"), deployment)
	return &Subject{
		Owner: footest.Foo("a", footest.WithStatus(footest.Settled("a"))),
		Kind:  kinds.Declared(kinds.Options{Image: footest.DefaultImage})[0], World: world, Now: now, Lease: cluster.Lease{Name: cache.NewObjectName("ns", "lease"), Lease: &coordinationv1.Lease{
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: &valid},
		}},
	}, deployment
}

func TestPrint(t *testing.T) {
	now := footest.Now.Time
	for name, test := range map[string]struct {
		change func(s *Subject, d *appsv1.Deployment)
		want   []string
	}{
		"an older condition": {func(s *Subject, _ *appsv1.Deployment) { s.Owner.SetGeneration(2) }, []string{"! this status describes generation 1 of the spec, which is now at generation 2"}},
		"a condition of a child": {func(s *Subject, _ *appsv1.Deployment) {
			s.Kind.Children[0].Condition = "Exposed"
			s.Owner.SetConditions(append(s.Owner.GetConditions(), metav1.Condition{
				Type: "Exposed", Status: "False", Reason: "Progressing", Message: "no address yet", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)),
			}))
		}, []string{"! Exposed is False, Progressing, for 60s: no address yet\n"}},
		"a Lease without a holder": {func(s *Subject, _ *appsv1.Deployment) { s.Lease.Spec.HolderIdentity = new("") }, []string{"not running: the Lease ns/lease has no holder"}},
		"no Lease": {func(s *Subject, _ *appsv1.Deployment) {
			s.Lease.Err = apierrors.NewNotFound(coordinationv1.Resource("leases"), "lease")
		}, []string{"unknown: there is no Lease ns/lease", "-> a controller without -leader-elect has no Lease"}},
		"a deletion in the foreground": {func(s *Subject, _ *appsv1.Deployment) { footest.BeingDeleted(s.Owner.(*samplev1alpha1.Foo)) }, []string{
			"! it has been terminating for 60m; it remains until the garbage collector has deleted its dependents\n"}},
		"an Event of the Foo": {func(s *Subject, _ *appsv1.Deployment) {
			for _, event := range []*corev1.Event{
				{ObjectMeta: metav1.ObjectMeta{Namespace: s.Owner.GetNamespace(), Name: "a"}, InvolvedObject: corev1.ObjectReference{Kind: "Foo", Name: "a", UID: s.Owner.GetUID()}, Type: "Warning", Reason: "Why", Message: "because", LastTimestamp: metav1.NewTime(now.Add(-2 * time.Second))},
				{ObjectMeta: metav1.ObjectMeta{Namespace: s.Owner.GetNamespace(), Name: "b"}, InvolvedObject: corev1.ObjectReference{Kind: "Foo", Name: "a", UID: "another"}, Message: "of another", LastTimestamp: metav1.NewTime(now)},
				{ObjectMeta: metav1.ObjectMeta{Namespace: "another", Name: "c"}, InvolvedObject: corev1.ObjectReference{Kind: "Foo", Name: "a", UID: s.Owner.GetUID()}, Message: "of another", LastTimestamp: metav1.NewTime(now)},
			} {
				s.Add(cluster.Events.GroupVersionResource, event)
			}
		}, []string{"Events, newest first:\n  2s    Warning  Foo a: Why: because\n"}},
		"advice once": {func(s *Subject, d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota: q"}}
			s.Owner.SetConditions(footest.Ready(metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentFailed, "exceeded quota: q", footest.Now))
		}, []string{"exceeded quota: q, for 0s\n    -> lower spec.replicas", "! FailedCreate: exceeded quota: q\n\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := settled(now)
			test.change(s, d)
			e, err := Of(s)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := e.Print(report.NewPrinter(&out), 10); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it lacks %q:\n%s", want, out.String())
				}
			}
		})
	}
}
