// SPDX-License-Identifier: Apache-2.0

// Package kinds is where a project declares its kinds: the children of each, which of their fields
// it owns, and what they mean for its status. Here, a Foo has a Deployment.
package kinds

import (
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

// Clients are what the controllers read and write with.
type Clients struct {
	// Kube writes children, and Foos the status of Foos.
	Kube kubernetes.Interface
	Foos clientset.Interface
	// KubeInformers and FooInformers are the informers that the controllers read from. They must
	// not run yet.
	KubeInformers kubeinformers.SharedInformerFactory
	FooInformers  fooinformers.SharedInformerFactory
}

// Options are what an administrator chooses for all objects of the program.
type Options struct {
	// Image is the image that the Pods run.
	Image string
	// OmitPodUser leaves the user of new Pods to the platform: OpenShift accepts only one of each
	// namespace's own.
	OmitPodUser bool
}

// All returns the kinds of the program.
func All(clients Clients, options Options) []*table.Kind {
	return []*table.Kind{Foos(clients, options)}
}

// Foos declares the kind Foo and the kinds that Foos own.
func Foos(clients Clients, options Options) *table.Kind {
	return table.Of(
		plan.Kind{Name: "Foo", Resource: samplev1alpha1.SchemeGroupVersion.WithResource("foos")},
		clients.FooInformers.Samplecontroller().V1alpha1().Foos().Informer(), clients.Foos.SamplecontrollerV1alpha1().Foos,
		table.Owns(deployment(options), clients.KubeInformers.Apps().V1().Deployments().Informer(), clients.Kube.AppsV1().Deployments),
	)
}

// Declared returns the kinds of the program for those who only decide, such as a preview: without a
// connection to an API server.
func Declared(options Options) (declared []*plan.Kind) {
	kube, foos := kubernetes.New(nil), clientset.New(nil)
	for _, kind := range All(Clients{
		Kube: kube, Foos: foos, KubeInformers: kubeinformers.NewSharedInformerFactory(kube, 0), FooInformers: fooinformers.NewSharedInformerFactory(foos, 0),
	}, options) {
		declared = append(declared, kind.Kind)
	}
	return declared
}
