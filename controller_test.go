// SPDX-License-Identifier: Apache-2.0

// The writes of a sync, in full: for a new Foo, for a change, for a Deployment that belongs to
// someone else, and for a rename. No other file is needed to read these tests. Tests of the
// loop follow, with the fixture of fixture_test.go: retries and back-offs.

package main

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/queue"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

var (
	foosResource        = samplev1alpha1.SchemeGroupVersion.WithResource("foos")
	deploymentsResource = appsv1.SchemeGroupVersion.WithResource("deployments")

	now     = metav1.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	earlier = metav1.NewTime(now.Add(-time.Hour))
)

// syncOnce syncs the Foo "web" in the namespace "team", and returns the writes.
func syncOnce(t *testing.T, foo *samplev1alpha1.Foo, deployments ...runtime.Object) []clienttesting.Action {
	t.Helper()
	kubeClient, fooClient := kubefake.NewClientset(deployments...), foofake.NewSimpleClientset()
	if err := fooClient.Tracker().Create(foosResource, foo, "team"); err != nil {
		t.Fatal(err)
	}
	kubeInformers := kubeinformers.NewSharedInformerFactory(kubeClient, 0)
	fooInformers := fooinformers.NewSharedInformerFactory(fooClient, 0)
	kind := kinds.Foos(kinds.Clients{
		Kube: kubeClient, Custom: fooClient, KubeInformers: kubeInformers, CustomInformers: fooInformers,
	}, kinds.Options{Image: "nginx:1.29"})
	kind.Rows, kind.Children = kind.Rows[:1], kind.Children[:1] // only the Deployment, whatever else a Foo may own one day
	if err := table.Prepare(kind); err != nil {
		t.Fatal(err)
	}
	controller := NewController(Config{
		Recorder: record.NewFakeRecorder(10), Clock: clocktesting.NewFakeClock(now.Time), CallTimeout: time.Minute, Metrics: metrics.New("sample-controller", "Foo"),
	}, kind)
	ctx, stop := context.WithCancel(t.Context())
	kubeInformers.StartWithContext(ctx)
	fooInformers.StartWithContext(ctx)
	defer func() {
		stop()
		kubeInformers.Shutdown()
		fooInformers.Shutdown()
		controller.queue.ShutDown()
	}()
	kubeInformers.WaitForCacheSyncWithContext(ctx)
	fooInformers.WaitForCacheSyncWithContext(ctx)
	if _, err := controller.syncHandler(ctx, cache.ObjectName{Namespace: "team", Name: "web"}); err != nil {
		t.Errorf("the sync failed: %v", err)
	}
	return slices.DeleteFunc(append(kubeClient.Actions(), fooClient.Actions()...), func(action clienttesting.Action) bool {
		return slices.Contains([]string{"get", "list", "watch"}, action.GetVerb())
	})
}

func expectWrites(t *testing.T, got []clienttesting.Action, want ...clienttesting.Action) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		t.Errorf("the writes are not as expected (-want +got):\n%s", diff.Diff(want, got))
	}
}

func create(deployment *appsv1.Deployment) clienttesting.Action {
	return clienttesting.NewCreateActionWithOptions(deploymentsResource, "team", deployment,
		metav1.CreateOptions{FieldManager: "sample-controller"})
}

func patch(name, patch string) clienttesting.Action {
	return clienttesting.NewPatchActionWithOptions(deploymentsResource, "team", name,
		types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "sample-controller"})
}

func updateStatus(foo *samplev1alpha1.Foo) clienttesting.Action {
	return clienttesting.NewUpdateSubresourceActionWithOptions(foosResource, "status", "team", foo,
		metav1.UpdateOptions{FieldManager: "sample-controller"})
}

func TestANewFooGetsADeployment(t *testing.T) {
	foo := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "foo", Generation: 1, ResourceVersion: "1"},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(2))},
	}
	expectWrites(t, syncOnce(t, foo), create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "web",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: "web", UID: "foo", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx", "controller": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx", "controller": "web"}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "nginx", Image: "nginx:1.29",
						VolumeMounts: []corev1.VolumeMount{{Name: "cache", MountPath: "/var/cache/nginx"}, {Name: "run", MountPath: "/run"}},
						SecurityContext: &corev1.SecurityContext{
							AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
						},
					}},
					Volumes: []corev1.Volume{
						{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
						{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					},
					AutomountServiceAccountToken: new(false),
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: new(true), RunAsUser: new(int64(101)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
						Sysctls:        []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}},
					},
				},
			},
		},
	}), updateStatus(&samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "foo", Generation: 1, ResourceVersion: "1"},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(2))},
		Status: samplev1alpha1.FooStatus{
			ObservedGeneration: 1,
			Selector:           "app=nginx,controller=web",
			Conditions: []metav1.Condition{{
				Type: "Ready", Status: "False", ObservedGeneration: 1, LastTransitionTime: now, Reason: "Progressing",
				Message: `Deployment "web" is rolling out: 0 of 2 Pods available`,
			}},
		},
	}))
}

// scaled returns a Foo that wants 3 Pods, and its Deployment, which has 2: the spec has just
// changed.
func scaled() (*samplev1alpha1.Foo, *appsv1.Deployment) {
	foo := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "foo", Generation: 2, ResourceVersion: "7"},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(3))},
		Status: samplev1alpha1.FooStatus{
			ObservedGeneration: 1, Replicas: 2, AvailableReplicas: 2, Selector: "app=nginx,controller=web",
			Conditions: []metav1.Condition{{
				Type: "Ready", Status: "True", ObservedGeneration: 1, LastTransitionTime: earlier, Reason: "Available",
				Message: `Deployment "web" has 2 of 2 Pods available`,
			}},
		},
	}
	return foo, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "web", UID: "deployment", Generation: 1, ResourceVersion: "6",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: "web", UID: "foo", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx", "controller": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx", "controller": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.29"}}},
			},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}
}

// Only the changed fields of the Deployment are sent, for the version that was read.
func TestAScaledFooScalesItsDeployment(t *testing.T) {
	foo, deployment := scaled()
	after := foo.DeepCopy()
	after.Status.ObservedGeneration = 2
	after.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: "False", ObservedGeneration: 2, LastTransitionTime: now, Reason: "Progressing",
		Message: `Deployment "web" is rolling out: 2 of 3 Pods available`,
	}}
	expectWrites(t, syncOnce(t, foo, deployment),
		patch("web", `{"metadata":{"resourceVersion":"6","uid":"deployment"},"spec":{"replicas":3}}`), updateStatus(after))
}

func TestADeploymentOfSomebodyElseIsLeftAlone(t *testing.T) {
	foo, deployment := scaled()
	deployment.OwnerReferences = nil
	after := foo.DeepCopy()
	after.Status = samplev1alpha1.FooStatus{
		ObservedGeneration: 2,
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: "False", ObservedGeneration: 2, LastTransitionTime: now, Reason: "DeploymentConflict",
			Message: `Deployment "web" exists and has no controller: choose another spec.deploymentName, delete the Deployment, ` +
				`or hand it over with 'kubectl annotate -n team deployment web samplecontroller.k8s.io/adopt-by=web'`,
		}, {
			Type: "Stalled", Status: "True", ObservedGeneration: 2, LastTransitionTime: now, Reason: "DeploymentConflict",
			Message: `Deployment "web" exists and has no controller: choose another spec.deploymentName, delete the Deployment, ` +
				`or hand it over with 'kubectl annotate -n team deployment web samplecontroller.k8s.io/adopt-by=web'`,
		}},
	}
	expectWrites(t, syncOnce(t, foo, deployment), updateStatus(after))
}

// The Deployment with the new name comes first. The one with the old name serves until then.
func TestARenamedFooKeepsItsDeploymentUntilTheNewOneIsReady(t *testing.T) {
	foo, old := scaled()
	foo.Spec.DeploymentName = "new"
	writes := syncOnce(t, foo, old)
	if len(writes) != 2 || !writes[0].Matches("create", "deployments") {
		t.Fatalf("the writes are %v", writes)
	}
	after := foo.DeepCopy()
	after.Status = samplev1alpha1.FooStatus{
		ObservedGeneration: 2, Selector: "app=nginx,controller=web",
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: "False", ObservedGeneration: 2, LastTransitionTime: now, Reason: "Progressing",
			Message: `Deployment "new" is rolling out: 0 of 3 Pods available; Deployment "web" stays in service until then`,
		}},
	}
	expectWrites(t, writes[1:], updateStatus(after))

	foo, old = scaled()
	foo.Spec.DeploymentName = "new"
	_, ready := scaled()
	ready.Name, ready.UID, ready.Spec.Replicas = "new", "successor", new(int32(3))
	ready.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
	if writes = syncOnce(t, foo, old, ready); len(writes) != 2 || !writes[0].Matches("delete", "deployments") {
		t.Errorf("once the new Deployment is ready, the writes are %v", writes)
	}
}

func TestRefusalWhoseStatusLostARaceIsReportedAtOnceAndNotRepeated(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.Refuse("create", children, quotaExceeded)
		f.FailTimes(1, "update", "foos", fooModified)
		defer f.start(2)()
		advance(queue.RefusedRetry / 2)
		f.ExpectWrites(createChild, writeStatus, writeStatus)
		f.ExpectEvents(`Warning DeploymentFailed The API server refused: creating Deployment "web": ` + quotaExceeded.Error())
	})
}

// nameIn returns the name of the object that an action creates.
func nameIn(action clienttesting.Action) string {
	return action.(clienttesting.CreateAction).GetObject().(footest.Object).GetName()
}

func TestFailingFooBacksOffAloneAndNotForMoreThanFiveMinutes(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("other"))), func(f *fixture) {
		var attempts []time.Time
		f.On("create", children, func(action clienttesting.Action) error {
			if nameIn(action) != "web" {
				return nil
			}
			attempts = append(attempts, time.Now())
			return serverFails
		})
		defer f.start(2)()
		advance(0)
		f.StoredChild("other")

		advance(6 * time.Hour)
		if last := attempts[len(attempts)-1].Sub(attempts[len(attempts)-2]); last != 5*time.Minute {
			t.Errorf("after hours of failure the Foo is retried every %v, not every 5m", last)
		}
		if second := attempts[1].Sub(attempts[0]); second != 5*time.Millisecond {
			t.Errorf("the second attempt came after %v, not after 5ms", second)
		}
	})
}

// Only a change of the Foo does. Nothing is left of a Foo that is deleted.
func TestResyncDoesNotRunAheadOfABackOff(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.Refuse("create", children, quotaExceeded)
		defer f.start(2)()
		advance(0)
		f.ExpectWrites(createChild, writeStatus)

		cached := f.cachedFoo("a")
		f.updateOwner(cached, cached)
		advance(queue.RefusedRetry - time.Second)
		f.ExpectWrites()
		advance(time.Second)
		f.ExpectWrites(createChild)

		f.scale("a", 3)
		advance(0)
		f.ExpectWrites(createChild, writeStatus)

		key := footest.KeyOf(footest.Foo("a"))
		before := f.backoff.InBackoff(key)
		f.DeleteFoo("a")
		advance(0)
		if after := f.backoff.InBackoff(key); !before || after {
			t.Errorf("the key has a back-off: before the deletion of its Foo %v, after it %v", before, after)
		}
		advance(time.Hour)
		f.ExpectWrites()
	})
}

// A recreated Foo is another Foo: it does not inherit the back-off of the deleted one.
func TestBackOffIsNotInherited(t *testing.T) {
	recreated := footest.Foo("a", footest.WithFooUID("uid-new"))
	for name, replace := range map[string]func(*fixture){
		"seen as one change": func(f *fixture) { f.Put(recreated.DeepCopy()) },
		"seen as a deletion and a creation": func(f *fixture) {
			f.DeleteFoo("a")
			f.Put(recreated.DeepCopy())
		},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, world(footest.Foo("a")), func(f *fixture) {
				refused := f.Refuse("create", children, quotaExceeded)
				defer f.start(2)()
				advance(59 * time.Minute)
				refused.Calls.Store(0)
				replace(f)
				advance(queue.RefusedRetry / 2)
				footest.ExpectEqual(t, "the number of attempts at once", 1, int(refused.Calls.Load()))
				advance(queue.RefusedRetry)
				footest.ExpectEqual(t, "the number of attempts after the first back-off", 2, int(refused.Calls.Load()))
			})
		})
	}
}

func TestFooInATerminatingNamespaceIsLeftAlone(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.Refuse("create", children, footest.NamespaceTerminating())
		defer f.start(2)()
		advance(0)
		f.ExpectWrites(createChild)
		cached := f.cachedFoo("a")
		f.updateOwner(cached, cached) // a resync
		advance(queue.LastRetry - time.Second)
		f.ExpectWrites()
		f.ExpectEvents()
	})
}

func TestPanicInOneSyncDoesNotStopTheOthers(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("other"))), func(f *fixture) {
		f.panics = true
		f.OnFirst(1, "create", children, func(clienttesting.Action) error { panic("a bug") })
		defer f.start(2)()
		advance(time.Second)
		f.StoredChild("other")
		f.StoredChild("web")
		f.ExpectMetrics("panics and syncs",
			`sample_controller_sync_panics_total 1`,
			`sample_controller_sync_duration_seconds_count{result="panic"} 1`)
	})
}

func TestSyncWaitsForTheCacheToSeeOurOwnWrite(t *testing.T) {
	for _, to := range []func(known *memory.Owner) *memory.Written{toStatus, toChild} {
		test(t, world(footest.Foo("a")), func(f *fixture) {
			f.wrote(to)
			defer f.start(2)()
			advance(0)
			f.ExpectWrites()
			f.ExpectMetrics("skipped syncs", `sample_controller_stale_syncs_total 1`,
				`sample_controller_sync_duration_seconds_count{result="retry"} 1`)

			advance(f.callTimeout + queue.BehindRetry) // a store whose versions went backward never shows the write
			f.ExpectWrites(createChild, writeStatus)
		})
	}
}
