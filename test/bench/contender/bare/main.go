// SPDX-License-Identifier: Apache-2.0

// Command bare is the limit to compare controllers with. For each Foo without a status it makes
// a controller's writes: the Deployment, the status and one Event. It decodes a controller's
// watches, and discards them: it has no cache, no queue and compares nothing.
//
//	bare -kubeconfig=FILE [-namespace=NAME] [-profiles=ADDRESS]
//
// After that it waits for a signal, so that its CPU and memory can be read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	_ "net/http/pprof" // served only with -profiles
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/bench/internal/objects"
)

// goroutines is the number of Foos that are written at the same time, like that of a
// controller's workers.
const goroutines = 2

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig")
	namespace := flag.String("namespace", metav1.NamespaceAll, "the only namespace to watch")
	profiles := flag.String("profiles", "", "`address` to serve /debug/pprof/ at")
	flag.Parse()
	if *profiles != "" {
		go func() { _ = http.ListenAndServe(*profiles, nil) }()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *kubeconfig, *namespace)
	stopped := ctx.Err() != nil
	stop()
	if err != nil && !stopped {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	clients, errFoo := clientset.NewForConfig(config)
	kube, errKube := kubernetes.NewForConfig(config)
	if err := errors.Join(errFoo, errKube); err != nil {
		return err
	}
	foos := clients.SamplecontrollerV1alpha1().Foos(namespace)
	waiting, err := foos.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	since := metav1.ListOptions{ResourceVersion: waiting.ResourceVersion}
	for _, open := range []func(context.Context, metav1.ListOptions) (watch.Interface, error){
		foos.Watch, kube.AppsV1().Deployments(namespace).Watch,
	} {
		opened, err := open(ctx, since)
		if err != nil {
			return err
		}
		go func() {
			for range opened.ResultChan() {
			}
		}()
	}
	workers, working := errgroup.WithContext(ctx)
	workers.SetLimit(goroutines)
	for i := range waiting.Items {
		workers.Go(func() error { return settle(working, kube, clients, &waiting.Items[i]) })
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// settle makes the writes for one Foo, one after the other.
func settle(ctx context.Context, kube kubernetes.Interface, foos clientset.Interface, foo *samplev1alpha1.Foo) error {
	err := objects.Settle(ctx, kube, foos, foo)
	if err == nil {
		_, err = kube.CoreV1().Events(foo.Namespace).Create(ctx, objects.Event(foo), metav1.CreateOptions{})
	}
	return err
}
