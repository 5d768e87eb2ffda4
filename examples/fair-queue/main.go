// SPDX-License-Identifier: Apache-2.0

// Command fair-queue labels every ConfigMap with a digest of its data. It is a whole controller on
// client-go alone, with the work queue and the back-off of pkg/reconcile/queue: a namespace with
// thousands of ConfigMaps, or whose policy refuses writes, delays no other.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/sample-controller/pkg/reconcile/queue"
)

// callTimeout bounds each call, and so how long a stop waits for syncs in progress.
const label, callTimeout = "example.com/digest", 10 * time.Second

type controller struct {
	client     kubernetes.Interface
	configMaps corev1listers.ConfigMapLister
	queue      *queue.Queue
	backoff    *queue.Backoff
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "Path of a kubeconfig. Not needed in a cluster.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		config.QPS = -1 // the API server's Priority and Fairness limits the rate
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
	factory := informers.NewSharedInformerFactory(client, 10*time.Minute)
	configMaps, clock := factory.Core().V1().ConfigMaps(), clock.RealClock{}
	c := &controller{client, configMaps.Lister(), queue.New("configmaps", clock), queue.NewBackoff(clock)}
	handlers, err := configMaps.TypedInformer().AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[*corev1.ConfigMap]{
		AddFunc: c.enqueue, UpdateFunc: c.updated, // the initial list counts as unchanged
		DeleteFunc: func(gone cache.DeletedObject[*corev1.ConfigMap]) { c.backoff.Forget(gone.GetObjectName()) },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	var wg sync.WaitGroup
	worker := func() {
		for key, end := c.queue.Get(); !end; key, end = c.queue.Get() {
			c.backoff.Begin(key)
			c.handleErr(ctx, key, c.syncHandler(ctx, key))
			c.queue.Done(key)
		}
	}
	c.queue.SetWorkers(workers, func() { wg.Go(worker) })
	if cache.WaitFor(ctx, "handlers", handlers.HasSyncedChecker()) {
		for range workers {
			wg.Go(worker)
		}
	}
	<-ctx.Done()
	c.queue.ShutDown() // keys that wait are left to the next start
	wg.Wait()
	return nil
}

// enqueue adds a key. Those of objects that have not changed wait for the others.
func (c *controller) enqueue(configMap *corev1.ConfigMap, unchanged bool) {
	if key := cache.MetaObjectToName(configMap); unchanged {
		c.queue.AddLowPriority(key)
	} else {
		c.queue.Add(key)
	}
}

func (c *controller) updated(before, after *corev1.ConfigMap) {
	if digestOf(before) == digestOf(after) && c.backoff.InBackoff(cache.MetaObjectToName(after)) {
		return // another sync is certain
	}
	c.enqueue(after, before.ResourceVersion == after.ResourceVersion) // the same version: a resync
}

func (c *controller) handleErr(ctx context.Context, key cache.ObjectName, err error) {
	next := queue.NextAttempt(err)
	if !next.Again {
		c.backoff.Forget(key)
		return
	}
	delay := c.backoff.End(key, err)
	c.queue.AddAfter(key, delay)
	if !next.Expected && !next.Deferred && c.backoff.MarkReported(key, string(apierrors.ReasonForError(err))) {
		klog.FromContext(ctx).Error(err, "Sync failed", "configMap", key, "retryAfter", delay)
	}
}

func (c *controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	configMap, err := c.configMaps.ConfigMaps(key.Namespace).Get(key.Name)
	if err != nil {
		return nil // it was deleted: a cache has no other error
	}
	digest := digestOf(configMap)
	if configMap.Labels[label] == digest {
		return nil
	}
	if err := c.backoff.Try(key, "label", digest); err != nil {
		return err
	}
	// The UID and the resourceVersion make a write fail that is based on a stale cache.
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q,"labels":{%q:%q}}}`, configMap.UID, configMap.ResourceVersion, label, digest)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout) // a stop interrupts no call
	defer cancel()
	returned := c.queue.Calling(key)
	_, err = c.client.CoreV1().ConfigMaps(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if returned(); err != nil {
		return c.backoff.Fail(key, "label", digest, err)
	}
	return nil
}

func digestOf(configMap *corev1.ConfigMap) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %q", configMap.Data, configMap.BinaryData)))[:16]
}
