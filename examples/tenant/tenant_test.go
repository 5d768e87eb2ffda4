// What a Tenant gets in the cluster and in namespaces, with fake clientsets.

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
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

	"example.com/acme/internal/kinds"
	api "example.com/acme/pkg/apis/acme/v1alpha1"
	customfake "example.com/acme/pkg/generated/clientset/versioned/fake"
	informers "example.com/acme/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/table"
)

// tenants is a cluster in memory with the Tenant "shop".
type tenants struct {
	t      *testing.T
	kube   *kubefake.Clientset
	custom *customfake.Clientset
}

// expect syncs the Tenant with new caches, and compares the writes, besides those of the status, and the reason of Ready.
func (c tenants) expect(say, reason string, want ...string) *metav1.Condition {
	c.t.Helper()
	clients := kinds.Clients{
		Kube: c.kube, Custom: c.custom, KubeInformers: kubeinformers.NewSharedInformerFactory(c.kube, 0), CustomInformers: informers.NewSharedInformerFactory(c.custom, 0),
		MetadataInformers: metadatainformer.NewSharedInformerFactory(nil, 0),
	}
	all := kinds.All(clients, kinds.Options{Image: "nginx:1.29"})
	if err := table.Prepare(all...); err != nil {
		c.t.Fatal(err)
	}
	controller := NewController(Config{
		Name: "tenants", Recorder: record.NewFakeRecorder(10), Clock: clocktesting.NewFakeClock(time.Now()), CallTimeout: time.Minute, Metrics: metrics.New("tenants", "Tenant"),
	}, all[slices.IndexFunc(all, func(kind *table.Kind) bool { return kind.Name == "Tenant" })])
	clients.KubeInformers.StartWithContext(c.t.Context())
	clients.CustomInformers.StartWithContext(c.t.Context())
	clients.KubeInformers.WaitForCacheSyncWithContext(c.t.Context())
	clients.CustomInformers.WaitForCacheSyncWithContext(c.t.Context())
	c.kube.ClearActions()
	if _, err := controller.syncHandler(c.t.Context(), cache.ObjectName{Name: "shop"}); err != nil {
		c.t.Fatal(err)
	}
	var writes []string
	for _, action := range c.kube.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			writes = append(writes, action.GetVerb()+" "+action.GetResource().Resource+strings.TrimSuffix(" in "+action.GetNamespace(), " in "))
		}
	}
	owner, err := c.custom.AcmeV1alpha1().Tenants().Get(c.t.Context(), "shop", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	ready := meta.FindStatusCondition(owner.Status.Conditions, "Ready")
	if !slices.Equal(writes, want) || ready == nil || ready.Reason != reason {
		c.t.Errorf("%s: the writes are %q, want %q; Ready is %+v, want the reason %s", say, writes, want, ready, reason)
	}
	return ready
}

// newTenants returns a cluster with some Namespaces. As in an API server, what is created gets a UID.
func newTenants(t *testing.T, namespaces ...runtime.Object) tenants {
	t.Helper()
	c := tenants{t, kubefake.NewClientset(namespaces...), customfake.NewClientset(&api.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1", Generation: 1}, Spec: api.TenantSpec{Pods: 10, Contact: "a@example.com"},
	})}
	c.kube.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		created := action.(clienttesting.CreateAction).GetObject().(metav1.Object)
		created.SetUID(types.UID(created.GetName()))
		return false, nil, nil
	})
	return c
}

func TestATenantGetsANamespaceAndWhatIsInIt(t *testing.T) {
	c := newTenants(t)
	c.expect("a new Tenant", "Progressing", "create namespaces", "create resourcequotas in shop", "create configmaps in kube-public")
	quotas := c.kube.CoreV1().ResourceQuotas("shop")
	quota, err := quotas.Get(t.Context(), "tenant", metav1.GetOptions{})
	if err != nil || !metav1.IsControlledBy(quota, &api.Tenant{ObjectMeta: metav1.ObjectMeta{UID: "1"}}) {
		t.Fatalf("the quota is %+v: %v", quota, err)
	}
	quota.Status.Hard = quota.Spec.Hard
	change(t, quotas.Update, quota)
	c.expect("the quota is in force", "Available")
	c.expect("at rest", "Available")

	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("99"), corev1.ResourceSecrets: resource.MustParse("1")}
	change(t, quotas.Update, quota)
	c.expect("someone raises the quota", "Available", "patch resourcequotas in shop")
	if quota, err = quotas.Get(t.Context(), "tenant", metav1.GetOptions{}); err != nil || quota.Spec.Hard.Pods().Value() != 10 || len(quota.Spec.Hard) != 2 {
		t.Errorf("the quota is %+v: %v", quota, err)
	}

	// What is in a Namespace goes before it.
	namespaces := c.kube.CoreV1().Namespaces()
	namespace, err := namespaces.Get(t.Context(), "shop", metav1.GetOptions{})
	if err := errors.Join(err, quotas.Delete(t.Context(), "tenant", metav1.DeleteOptions{})); err != nil {
		t.Fatal(err)
	}
	namespace.DeletionTimestamp, namespace.Finalizers = new(metav1.Now()), []string{"kubernetes"}
	change(t, namespaces.Update, namespace)
	c.expect("someone deletes the Namespace", "Terminating")
	if err := namespaces.Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.expect("the Namespace is gone", "Progressing", "create namespaces", "create resourcequotas in shop")
}

func TestATenantTakesNoNamespaceOfOthers(t *testing.T) {
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "2"}}
	c := newTenants(t, theirs)
	if ready := c.expect("the Namespace belongs to nobody", "NamespaceConflict"); !strings.Contains(ready.Message, "kubectl annotate namespace shop acme.dev/adopt-by=shop") {
		t.Errorf("the message is %q", ready.Message)
	}
	theirs.Annotations = map[string]string{"acme.dev/adopt-by": "shop"}
	change(t, c.kube.CoreV1().Namespaces().Update, theirs)
	c.expect("it is handed over", "Progressing", "patch namespaces", "create resourcequotas in shop", "create configmaps in kube-public")
}

// change updates an object.
func change[T any](t *testing.T, update func(context.Context, T, metav1.UpdateOptions) (T, error), object T) {
	t.Helper()
	if _, err := update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
