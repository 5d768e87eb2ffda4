// What a Namespace gets, with a fake clientset.

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/quotas/internal/kinds"
	"example.com/quotas/internal/names"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/table"
)

// expect syncs the Namespace "shop" with new caches, and compares the writes. It returns the Events.
func expect(t *testing.T, kube *kubefake.Clientset, say string, want ...string) (events []string) {
	t.Helper()
	kubeInformers, ownInformers, recorder := kubeinformers.NewSharedInformerFactory(kube, 0), kubeinformers.NewSharedInformerFactory(kube, 0), record.NewFakeRecorder(10)
	all := kinds.All(kinds.Clients{
		Kube: kube, Custom: kube, KubeInformers: kubeInformers, CustomInformers: ownInformers, MetadataInformers: metadatainformer.NewSharedInformerFactory(nil, 0),
	}, kinds.Options{})
	if err := table.Prepare(all...); err != nil {
		t.Fatal(err)
	}
	controller := NewController(Config{
		Recorder: recorder, Clock: clocktesting.NewFakeClock(time.Now()), CallTimeout: time.Minute, Metrics: metrics.New(names.Controller, names.Kind),
	}, all[0])
	kubeInformers.StartWithContext(t.Context())
	ownInformers.StartWithContext(t.Context())
	kubeInformers.WaitForCacheSyncWithContext(t.Context())
	ownInformers.WaitForCacheSyncWithContext(t.Context())
	kube.ClearActions()
	if _, err := controller.syncHandler(t.Context(), cache.ObjectName{Name: "shop"}); err != nil {
		t.Fatal(err)
	}
	var writes []string
	for _, action := range kube.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			writes = append(writes, action.GetVerb()+" "+action.GetResource().Resource)
		}
	}
	if !slices.Equal(writes, want) {
		t.Errorf("%s: the writes are %q, want %q", say, writes, want)
	}
	close(recorder.Events)
	for event := range recorder.Events {
		events = append(events, event)
	}
	return events
}

// newCluster returns a cluster with objects. As in an API server, what is created gets a UID.
func newCluster(objects ...runtime.Object) *kubefake.Clientset {
	kube := kubefake.NewClientset(objects...)
	kube.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		created := action.(clienttesting.CreateAction).GetObject().(metav1.Object)
		created.SetUID(types.UID(created.GetName()))
		return false, nil, nil
	})
	return kube
}

func change[T any](t *testing.T, update func(context.Context, T, metav1.UpdateOptions) (T, error), object T) {
	t.Helper()
	if _, err := update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestTheLifeOfOneNamespace(t *testing.T) {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1", Labels: map[string]string{"note": "kept"}}}
	kube := newCluster(shop)
	namespaces, quotas := kube.CoreV1().Namespaces(), kube.CoreV1().ResourceQuotas("shop")
	expect(t, kube, "no size")
	resize := func(size string) {
		t.Helper()
		live, err := namespaces.Get(t.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if live.Labels["acme.dev/size"] = size; size == "" {
			delete(live.Labels, "acme.dev/size")
		}
		change(t, namespaces.Update, live)
	}
	expectPods := func(want int64) {
		t.Helper()
		if quota, err := quotas.Get(t.Context(), "size", metav1.GetOptions{}); err != nil || quota.Spec.Hard.Pods().Value() != want || !metav1.IsControlledBy(quota, shop) {
			t.Errorf("the quota is %+v: %v", quota, err)
		}
	}
	resize("small")
	expect(t, kube, "a size", "patch namespaces", "create resourcequotas")
	expectPods(10)
	if live, err := namespaces.Get(t.Context(), "shop", metav1.GetOptions{}); err != nil || live.Labels["note"] != "kept" || live.Labels["pod-security.kubernetes.io/enforce"] != "baseline" {
		t.Errorf("the Namespace is %+v: %v", live, err)
	}
	expect(t, kube, "at rest")
	resize("large")
	expect(t, kube, "another size", "patch resourcequotas")
	expectPods(200)
	resize("")
	expect(t, kube, "no size any more", "delete resourcequotas")
}

func TestAQuotaOfOthersIsAnEvent(t *testing.T) {
	kube := newCluster(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1", Labels: map[string]string{"acme.dev/size": "small"}}},
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "size", UID: "2"}})
	if events := expect(t, kube, "a quota of others", "patch namespaces"); len(events) != 1 || !strings.HasPrefix(events[0], "Warning ResourceQuotaConflict") {
		t.Errorf("the Events are %q", events)
	}
}
