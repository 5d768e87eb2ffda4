// How a ShardedCache grows and shrinks, with fake clientsets.

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/acme/internal/kinds"
	api "example.com/acme/pkg/apis/acme/v1alpha1"
	customfake "example.com/acme/pkg/generated/clientset/versioned/fake"
	informers "example.com/acme/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/table"
)

// syncCache syncs the ShardedCache "web" in the namespace "team" beside its children, until it is at rest for now. It
// returns the writes of StatefulSets, such as "create web-0", the cache, and the children.
func syncCache(t *testing.T, owner *api.ShardedCache, children ...runtime.Object) (writes []string, _ *api.ShardedCache, _ []runtime.Object) {
	t.Helper()
	kube, custom := kubefake.NewClientset(children...), customfake.NewClientset(owner)
	clients := kinds.Clients{
		Kube: kube, Custom: custom, KubeInformers: kubeinformers.NewSharedInformerFactory(kube, 0), CustomInformers: informers.NewSharedInformerFactory(custom, 0),
		MetadataInformers: metadatainformer.NewSharedInformerFactory(nil, 0),
	}
	all := kinds.All(clients, kinds.Options{Image: "nginx:1.29"})
	if err := table.Prepare(all...); err != nil {
		t.Fatal(err)
	}
	caches := all[slices.IndexFunc(all, func(kind *table.Kind) bool { return kind.Name == "ShardedCache" })]
	controller := NewController(Config{
		Name: "caches", Recorder: record.NewFakeRecorder(10), Clock: clocktesting.NewFakeClock(time.Now()), CallTimeout: time.Minute, Metrics: metrics.New("caches", "ShardedCache"),
	}, caches)
	clients.KubeInformers.StartWithContext(t.Context())
	clients.CustomInformers.StartWithContext(t.Context())
	clients.KubeInformers.WaitForCacheSyncWithContext(t.Context())
	clients.CustomInformers.WaitForCacheSyncWithContext(t.Context())
	if _, err := controller.syncHandler(t.Context(), cache.ObjectName{Namespace: "team", Name: "web"}); err != nil {
		t.Fatal(err)
	}
	for _, action := range kube.Actions() {
		switch named := action.(type) {
		case clienttesting.CreateActionImpl:
			if action.GetResource().Resource == "statefulsets" {
				writes = append(writes, "create "+named.GetObject().(metav1.Object).GetName())
			}
		case clienttesting.PatchActionImpl:
			writes = append(writes, "patch "+named.GetName())
		case clienttesting.DeleteActionImpl:
			if action.GetResource().Resource == "statefulsets" {
				writes = append(writes, "delete "+named.GetName())
			}
		}
	}
	owner, err := custom.AcmeV1alpha1().ShardedCaches("team").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sets, err := kube.AppsV1().StatefulSets("team").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	services, err := kube.CoreV1().Services("team").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	children = nil
	for i := range sets.Items {
		children = append(children, &sets.Items[i])
	}
	for i := range services.Items {
		children = append(children, &services.Items[i])
	}
	return writes, owner, children
}

// start makes the Pods of all StatefulSets ready.
func start(children []runtime.Object) {
	for _, child := range children {
		if set, ok := child.(*appsv1.StatefulSet); ok {
			set.Status = appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1}
		}
	}
}

// stop makes the Pod of a StatefulSet unready.
func stop(children []runtime.Object, name string) {
	for _, child := range children {
		if set, ok := child.(*appsv1.StatefulSet); ok && set.Name == name {
			set.Status.ReadyReplicas = 0
		}
	}
}

func TestACacheGrowsAndShrinksOneShardAtATime(t *testing.T) {
	owner := &api.ShardedCache{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "1", Generation: 1},
		Spec:       api.ShardedCacheSpec{Shards: 3, Memory: 64},
	}
	var writes []string
	var children []runtime.Object
	expect := func(say, want string) {
		t.Helper()
		writes, owner, children = syncCache(t, owner, children...)
		if got := strings.Join(writes, ", "); got != want {
			t.Errorf("%s: the writes are %q, want %q", say, got, want)
		}
	}
	expect("a new cache", "create web-0")
	expect("the first shard is not ready", "")
	start(children)
	expect("the first shard is ready", "create web-1")
	start(children)
	expect("two shards are ready", "create web-2")
	start(children)
	expect("three shards are ready", "")
	if owner.Status.ReadyShards != 3 {
		t.Errorf("the status has %d ready shards", owner.Status.ReadyShards)
	}

	owner.Spec.Memory = 128
	stop(children, "web-0")
	expect("more memory, but the first shard is not ready", "patch web-0")

	start(children)
	owner.Spec.Shards = 1
	stop(children, "web-2")
	expect("fewer shards, and the last is not ready", "delete web-2")
	expect("the last is gone", "delete web-1")
	expect("at rest", "")
	if owner.Status.ReadyShards != 1 {
		t.Errorf("the status has %d ready shards", owner.Status.ReadyShards)
	}
}
