// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// While the event of a Job is late, each change of the ConfigMap leads to a sync.
func TestALateEventLeadsToNoSecondJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "uid-a", Labels: map[string]string{label: "busybox"}}}
		client, events := fake.NewClientset(configMap), watch.NewFakeWithChanSize(10, false)
		var created atomic.Pointer[batchv1.Job]
		var count atomic.Int32
		client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		})
		client.PrependWatchReactor("jobs", func(clienttesting.Action) (bool, watch.Interface, error) { return true, events, nil })
		client.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
			job := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job).DeepCopy()
			job.Name, job.Namespace, job.ResourceVersion = fmt.Sprint(job.GenerateName, count.Add(1)), "team", "5"
			created.Store(job)
			return true, job, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- run(ctx, client, 2) }()
		change := func() {
			<-time.After(time.Second)
			configMap.Data = map[string]string{"at": time.Now().String()}
			if _, err := client.CoreV1().ConfigMaps("team").Update(ctx, configMap, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for range 5 {
			change()
		}
		events.Add(created.Load())
		for range 5 {
			change()
		}
		if n := count.Load(); n != 1 {
			t.Errorf("%d Jobs were created for a ConfigMap, not 1", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
