// SPDX-License-Identifier: Apache-2.0

// Command client applies a Foo, as another program would, with the generated client. It is for
// docs/questions.md.
package main

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	samplev1alpha1 "example.com/sample-controller/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	foos := clientset.NewForConfigOrDie(config).SamplecontrollerV1alpha1().Foos("default")
	spec := samplev1alpha1.FooSpec().WithDeploymentName("shop").WithReplicas(2)
	shop := samplev1alpha1.Foo("shop", "default").WithSpec(spec)
	foo, err := foos.Apply(ctx, shop, metav1.ApplyOptions{FieldManager: "shop-maker"})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%s: %s\n", foo.Name, foo.Status.Conditions[0].Message)
	return nil
}
