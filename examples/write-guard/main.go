// SPDX-License-Identifier: Apache-2.0

// Command write-guard starts one Job for each ConfigMap that has the label example.com/run. It is a
// whole controller on client-go alone, with the guard of pkg/reconcile/memory: a sync that begins before
// the watch has delivered the controller's last write would find no Job, and start a second one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/reconcile/memory"
)

// callTimeout bounds a call, and how long a sync waits for the cache to include the last write.
const label, callTimeout = "example.com/run", 10 * time.Second

type controller struct {
	client     kubernetes.Interface
	configMaps cache.TypedIndexer[*corev1.ConfigMap]
	jobs       cache.TypedIndexer[*batchv1.Job]
	queue      workqueue.TypedRateLimitingInterface[cache.ObjectName]
	written    sync.Map // by key, the memory.Written of the last Job that was created for a ConfigMap
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "Path of a kubeconfig. Not needed in a cluster.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = run(ctx, kubernetes.NewForConfigOrDie(config), 2)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run syncs until ctx is done, and returns when the syncs in progress have ended.
func run(ctx context.Context, client kubernetes.Interface, workers int) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	configMaps, jobs := factory.Core().V1().ConfigMaps().TypedInformer(), factory.Batch().V1().Jobs().TypedInformer()
	c := &controller{
		client: client, configMaps: configMaps.GetTypedIndexer(), jobs: jobs.GetTypedIndexer(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	if err := jobs.AddTypedIndexers(cache.TypedIndexers[*batchv1.Job]{"owner": ownerOf}); err != nil {
		return err
	}
	handlers, err := configMaps.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[*corev1.ConfigMap]{
		AddFunc:    func(configMap *corev1.ConfigMap, _ bool) { c.queue.Add(cache.MetaObjectToName(configMap)) },
		UpdateFunc: func(_, configMap *corev1.ConfigMap) { c.queue.Add(cache.MetaObjectToName(configMap)) },
		DeleteFunc: func(gone cache.DeletedObject[*corev1.ConfigMap]) { c.queue.Add(gone.GetObjectName()) },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	var wg sync.WaitGroup
	if cache.WaitFor(ctx, "caches", handlers.HasSyncedChecker(), jobs.HasSyncedChecker()) {
		for range workers {
			wg.Go(func() {
				for key, end := c.queue.Get(); !end; key, end = c.queue.Get() {
					c.handleErr(ctx, key, c.syncHandler(ctx, key))
					c.queue.Done(key)
				}
			})
		}
	}
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
	return nil
}

// ownerOf indexes a Job by the UID of its controller.
func ownerOf(job *batchv1.Job) ([]string, error) {
	if ref := metav1.GetControllerOfNoCopy(job); ref != nil {
		return []string{string(ref.UID)}, nil
	}
	return nil, nil
}

func (c *controller) handleErr(ctx context.Context, key cache.ObjectName, err error) {
	if err == nil {
		c.queue.Forget(key)
	} else {
		klog.FromContext(ctx).V(2).Info("Syncing again", "configMap", key, "reason", err)
		c.queue.AddRateLimited(key)
	}
}

func (c *controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	known, _ := c.written.Load(key)
	written, _ := known.(memory.Written)
	// Before the caches are read, and with a limit: after a restore of etcd, versions start again below
	// the one that was written.
	if err := written.EnsureReady(c.jobs, time.Now(), callTimeout); err != nil {
		return err
	}
	c.written.Delete(key)
	found, exists, err := c.configMaps.GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	configMap := found.(*corev1.ConfigMap) //nolint:forcetypeassert // the informer's type
	jobs, err := c.jobs.ByTypedIndex("owner", string(configMap.UID))
	if err != nil || len(jobs) > 0 || configMap.Labels[label] == "" {
		return err
	}
	owner := *metav1.NewControllerRef(configMap, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{GenerateName: key.Name + "-", OwnerReferences: []metav1.OwnerReference{owner}}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "run", Image: configMap.Labels[label]}}}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout) // a stop interrupts no call
	defer cancel()
	created, err := c.client.BatchV1().Jobs(key.Namespace).Create(ctx, job, metav1.CreateOptions{})
	if err == nil {
		written.Observe(created, time.Now())
		c.written.Store(key, written)
	}
	return err
}
