// SPDX-License-Identifier: Apache-2.0

// Command controllerruntime is a controller for Foos on sigs.k8s.io/controller-runtime,
// to compare with what most people would use. It is deliberately plain, and has the
// manager's defaults except for two concurrent reconciles.
package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
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
	flag.Parse() // -kubeconfig, which controller-runtime defines
	ctrl.SetLogger(klog.Background())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := (&reconciler{client: manager.GetClient(), scheme: scheme, recorder: manager.GetEventRecorder("foo-controller")}).setUp(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
