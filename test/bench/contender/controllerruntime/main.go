// SPDX-License-Identifier: Apache-2.0

// Command controllerruntime is a controller for Foos on sigs.k8s.io/controller-runtime,
// to compare with what most people would use. It is deliberately plain, and has the
// manager's defaults except for two concurrent reconciles.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "controllerruntime:", err)
		os.Exit(1)
	}
}

// run reconciles the Foos of the cluster of -kubeconfig, a flag of controller-runtime,
// until a signal arrives.
func run() error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(samplev1alpha1.Install(scheme))
	namespace := flag.String("namespace", metav1.NamespaceAll, "the only namespace to watch")
	profiles := flag.String("profiles", "0", "`address` to serve /debug/pprof/ at")
	flag.Parse() // and -kubeconfig, which controller-runtime defines
	ctrl.SetLogger(klog.Background())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{*namespace: {}}},
		Metrics: metricsserver.Options{BindAddress: "0"}, PprofBindAddress: *profiles,
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&samplev1alpha1.Foo{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Complete(&reconciler{client: manager.GetClient(), scheme: scheme, recorder: manager.GetEventRecorder("foo-controller")})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type reconciler struct {
	client   client.Client
	scheme   *runtime.Scheme
	recorder events.EventRecorder
}

// Reconcile creates or updates the Deployment that a Foo asks for, and writes the Foo's
// status if it differs.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var foo samplev1alpha1.Foo
	if err := r.client.Get(ctx, request.NamespacedName, &foo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !foo.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.client, deployment, func() error {
		shape(deployment, &foo)
		return controllerutil.SetControllerReference(&foo, deployment, r.scheme)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reconciling the Deployment: %w", err)
	}
	if result != controllerutil.OperationResultNone {
		r.recorder.Eventf(&foo, deployment, corev1.EventTypeNormal, "Synced", "Sync", "Deployment %s was %s", deployment.Name, result)
	}
	status := statusOf(&foo, deployment)
	if equality.Semantic.DeepEqual(foo.Status, status) {
		return ctrl.Result{}, nil
	}
	foo.Status = status
	if err := r.client.Status().Update(ctx, &foo); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status: %w", err)
	}
	return ctrl.Result{}, nil
}

// shape sets the fields that a Foo asks for, and no field that the API server sets.
func shape(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	labels := map[string]string{"app": "nginx", "controller": foo.Name}
	if deployment.CreationTimestamp.IsZero() {
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	}
	if foo.Spec.Replicas != nil {
		deployment.Spec.Replicas = foo.Spec.Replicas
	}
	deployment.Spec.Template.Labels = labels
	pod := &deployment.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		pod.Containers = []corev1.Container{{Name: "nginx"}}
	}
	pod.Containers[0].Image = "nginx:latest"
}

func statusOf(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) samplev1alpha1.FooStatus {
	status := *foo.Status.DeepCopy()
	status.ObservedGeneration = foo.Generation
	status.Replicas = deployment.Status.Replicas
	status.AvailableReplicas = deployment.Status.AvailableReplicas
	status.Selector = metav1.FormatLabelSelector(deployment.Spec.Selector)
	ready := metav1.Condition{
		Type: samplev1alpha1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: foo.Generation,
		Reason: samplev1alpha1.ReasonProgressing,
		// The message of settled Foos, so that they need no write.
		Message: fmt.Sprintf("Deployment %q is rolling out: %d of 1 Pods available", deployment.Name, status.AvailableReplicas),
	}
	if deployment.Spec.Replicas != nil && status.AvailableReplicas == *deployment.Spec.Replicas {
		ready.Status, ready.Reason = metav1.ConditionTrue, samplev1alpha1.ReasonAvailable
	}
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}
