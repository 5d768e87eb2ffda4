// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// cluster has the clients of all levels, in order to call a function before each patch of a
// ConfigMap. The function may take time, unlike a reaction of the fake.
type cluster struct {
	*fake.Clientset
	corev1client.CoreV1Interface
	corev1client.ConfigMapInterface
	namespace string
	patching  func(ctx context.Context, namespace string) error
}

func (c cluster) CoreV1() corev1client.CoreV1Interface { return c }

func (c cluster) ConfigMaps(namespace string) corev1client.ConfigMapInterface {
	c.namespace, c.ConfigMapInterface = namespace, c.Clientset.CoreV1().ConfigMaps(namespace)
	return c
}

func (c cluster) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*corev1.ConfigMap, error) {
	if err := c.patching(ctx, c.namespace); err != nil {
		return nil, err
	}
	return c.ConfigMapInterface.Patch(ctx, name, pt, data, o, sub...)
}

func TestNoNamespaceDelaysAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refusals atomic.Int32
		var isLifted atomic.Bool
		c := cluster{Clientset: fake.NewClientset(), patching: func(ctx context.Context, namespace string) error {
			takes := 100 * time.Millisecond
			switch {
			case namespace == "hangs":
				takes = time.Hour
			case namespace == "full" && !isLifted.Load():
				refusals.Add(1)
				return apierrors.NewForbidden(corev1.Resource("configmaps"), "", fmt.Errorf("exceeded quota"))
			}
			select {
			case <-ctx.Done():
			case <-time.After(takes):
			}
			return ctx.Err()
		}}
		change := func(namespace, name, value string) {
			changed, client := &corev1.ConfigMap{Data: map[string]string{"key": value}}, c.ConfigMaps(namespace)
			changed.Namespace, changed.Name, changed.Annotations = namespace, name, map[string]string{"at": time.Now().String()}
			if _, err := client.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
				_, _ = client.Create(t.Context(), changed, metav1.CreateOptions{})
			}
		}
		digest := func(namespace, name string) string {
			configMap, err := c.ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return configMap.Labels[label]
		}
		for i := range 60 {
			change("big", fmt.Sprint(i), "a")
			change("hangs", fmt.Sprint(i), "a")
		}
		change("full", "web", "a")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, c, 2) }()
		advance := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		advance(time.Second)
		change("small", "web", "a")
		advance(300 * time.Millisecond)
		first := digest("small", "web")
		if first == "" || digest("big", "9") != "" {
			t.Errorf("after 300 ms the only ConfigMap of a namespace has the digest %q", first)
		}
		for range 20 {
			change("full", "web", "a") // each event could repeat the refused write
			advance(3 * time.Second)
		}
		if n := refusals.Load(); n < 3 || n > 8 {
			t.Errorf("in a minute, a write was refused %d times", n)
		}
		isLifted.Store(true)
		advance(2 * time.Minute)
		if got := digest("full", "web"); got != first {
			t.Errorf("after the quota was raised, the digest is %q, want %q", got, first)
		}

		change("small", "web", "b")
		synctest.Wait() // its write is in progress
		stop()
		asked := time.Now()
		if err := <-ended; err != nil || time.Since(asked) > callTimeout {
			t.Errorf("the stop took %v: %v", time.Since(asked), err)
		}
		if got := digest("small", "web"); got == "" || got == first {
			t.Errorf("a stop has interrupted a write: the digest is %q", got)
		}
	})
}
