// SPDX-License-Identifier: Apache-2.0

package thirdparty

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "k8s.io/sample-controller/pkg/generated/clientset/versioned"
	foofake "k8s.io/sample-controller/pkg/generated/clientset/versioned/fake"
	fooinformers "k8s.io/sample-controller/pkg/generated/informers/externalversions"
	"k8s.io/utils/clock"

	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/queue"
)

// controller creates a Deployment with a made-up name for each of upstream's Foos, once.
type controller struct {
	kube        kubernetes.Interface
	foos        cache.SharedIndexInformer
	deployments cache.SharedIndexInformer
	queue       *queue.Queue
	backoff     *queue.Backoff
	written     sync.Map // by key, a memory.Written
}

func run(ctx context.Context, kube kubernetes.Interface, custom clientset.Interface) error {
	clock := clock.RealClock{}
	core, foos := informers.NewSharedInformerFactory(kube, 0), fooinformers.NewSharedInformerFactory(custom, 0)
	c := &controller{
		kube: kube, foos: foos.Samplecontroller().V1alpha1().Foos().Informer(), deployments: core.Apps().V1().Deployments().Informer(),
		queue: queue.New("foos", clock), backoff: queue.NewBackoff(clock),
	}
	add := func(obj any) { c.queue.Add(cache.MetaObjectToName(obj.(metav1.Object))) }
	_, err := c.foos.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, foo any) { add(foo) }})
	if err != nil {
		return err
	}
	core.Start(ctx.Done())
	foos.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), c.foos.HasSynced, c.deployments.HasSynced)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for key, end := c.queue.Get(); !end; key, end = c.queue.Get() {
				c.backoff.Begin(key)
				if err := c.sync(ctx, key); queue.NextAttempt(err).Again {
					c.queue.AddAfter(key, c.backoff.End(key, err))
				} else {
					c.backoff.Forget(key)
				}
				c.queue.Done(key)
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
	return nil
}

func (c *controller) sync(ctx context.Context, key cache.ObjectName) error {
	known, _ := c.written.Load(key)
	written, _ := known.(memory.Written)
	if err := written.EnsureReady(c.deployments.GetStore(), time.Now(), time.Minute); err != nil {
		return err
	}
	obj, exists, err := c.foos.GetIndexer().GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	foo := obj.(*v1alpha1.Foo) //nolint:forcetypeassert // the informer's type
	for _, deployment := range c.deployments.GetStore().List() {
		if metav1.IsControlledBy(deployment.(*appsv1.Deployment), foo) {
			return nil
		}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		GenerateName:    key.Name + "-",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, v1alpha1.SchemeGroupVersion.WithKind("Foo"))},
	}}
	created, err := c.kube.AppsV1().Deployments(key.Namespace).Create(ctx, deployment, metav1.CreateOptions{})
	if err != nil {
		return c.backoff.Fail(key, "Deployment", foo.Generation, err)
	}
	written.Observe(created, time.Now())
	c.written.Store(key, written)
	return nil
}

// The watch of Deployments shows nothing before the end.
func TestALateEventLeadsToNoSecondDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foo := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "uid-a"}}
		kube, custom, events := fake.NewClientset(), foofake.NewClientset(foo), watch.NewFakeWithChanSize(1, false)
		kube.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		})
		kube.PrependWatchReactor("deployments", func(clienttesting.Action) (bool, watch.Interface, error) { return true, events, nil })
		var created atomic.Int32
		kube.PrependReactor("create", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
			deployment := action.(clienttesting.CreateAction).GetObject().(*appsv1.Deployment).DeepCopy()
			deployment.Name, deployment.ResourceVersion = "a-1", "5"
			created.Add(1)
			return true, deployment, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- run(ctx, kube, custom) }()
		for i := range int32(5) {
			<-time.After(time.Second)
			foo.Spec.Replicas = &i
			if _, err := custom.SamplecontrollerV1alpha1().Foos("team").Update(ctx, foo, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := created.Load(); n != 1 {
			t.Errorf("%d Deployments were created for a Foo, not 1", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestNothingElseOfTheProjectIsCompiled(t *testing.T) {
	const project, library = "example.com/sample-controller/", "pkg/reconcile/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-test", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		if of, is := strings.CutPrefix(pkg, project); is && !strings.HasPrefix(of, library) {
			t.Errorf("it needs %s", pkg)
		}
	}
}
