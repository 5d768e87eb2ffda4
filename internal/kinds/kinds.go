// SPDX-License-Identifier: Apache-2.0

// Package kinds is where a project declares its kinds: the children of each, which of their fields
// it owns, and what they mean for its status. Here, a Foo has a Deployment.
package kinds

import (
	"flag"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata/metadatainformer"

	"example.com/sample-controller/internal/names"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	custominformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

// Clients are what the controllers read and write with.
type Clients struct {
	// Kube writes children, and Custom, which is generated, the status of owners.
	Kube   kubernetes.Interface
	Custom clientset.Interface
	// KubeInformers and CustomInformers are the informers that the controllers read from. They must
	// not run yet.
	KubeInformers   kubeinformers.SharedInformerFactory
	CustomInformers custominformers.SharedInformerFactory
	// MetadataInformers are for objects that owners name, of which names and versions are enough: see table.Uses.
	MetadataInformers metadatainformer.SharedInformerFactory
}

// Options are what an administrator chooses for all objects of the program.
type Options struct {
	// Image is the image that the Pods run.
	Image string
	// OmitPodUser leaves the user of new Pods to the platform: OpenShift accepts only one of each
	// namespace's own.
	OmitPodUser bool
}

// AddFlags adds the options to a command's flags.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Image, "image", names.DefaultImage,
		"Image of the container nginx in the Deployments of all Foos, for example from a mirror. Changing it rolls out all of them. The admission policy must allow it.")
	flags.BoolVar(&o.OmitPodUser, "omit-pod-user", false,
		"Set no runAsUser in new Deployments, so that the platform chooses the Pods' user, as OpenShift does. Otherwise the user is 101. Existing Deployments keep theirs.")
}

// Check calls refuse for each rule, with whether the options break it and the error.
func (o *Options) Check(refuse func(isWrong bool, format string, args ...any)) {
	refuse(o.Image == "", "-image=%q: must be the name of an image", o.Image)
}

// All returns the kinds of the program.
func All(clients Clients, options Options) []*table.Kind {
	return []*table.Kind{Foos(clients, options)}
}

// Foos declares the kind Foo and the kinds that Foos own.
func Foos(clients Clients, options Options) *table.Kind {
	return table.Of(
		plan.Kind{Name: "Foo", Resource: samplev1alpha1.SchemeGroupVersion.WithResource("foos")},
		clients.CustomInformers.Samplecontroller().V1alpha1().Foos().Informer(), clients.Custom.SamplecontrollerV1alpha1().Foos,
		table.Owns(deployment(options), clients.KubeInformers.Apps().V1().Deployments().Informer(), clients.Kube.AppsV1().Deployments),
	)
}

// Declared returns the kinds of the program for those who only decide, such as a preview: without a
// connection to an API server.
func Declared(options Options) (declared []*plan.Kind) {
	for _, kind := range unconnected(options) {
		declared = append(declared, kind.Kind)
	}
	return declared
}

// unconnected returns the kinds of the program with clients that can't be used.
func unconnected(options Options) []*table.Kind {
	kube, custom := kubernetes.New(nil), clientset.New(nil)
	return All(Clients{
		Kube: kube, Custom: custom, KubeInformers: kubeinformers.NewSharedInformerFactory(kube, 0), CustomInformers: custominformers.NewSharedInformerFactory(custom, 0),
		MetadataInformers: metadatainformer.NewSharedInformerFactory(nil, 0),
	}, options)
}
