/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/preview"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// protobuf is how built-in kinds are read: it takes half of the time of JSON.
const protobuf = "application/vnd.kubernetes.protobuf,application/json"

// cluster reads from an API server, with one list per kind.
type cluster struct {
	config *rest.Config
	// namespace is "" for all.
	namespace string
}

func newCluster(flags *genericclioptions.ConfigFlags, allNamespaces bool) (*cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	if allNamespaces {
		namespace = metav1.NamespaceAll
	}
	return &cluster{config, namespace}, nil
}

func (c *cluster) foos(ctx context.Context) ([]*samplev1alpha1.Foo, error) {
	client, err := clientset.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	list, err := client.SamplecontrollerV1alpha1().Foos(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, describe(err, samplev1alpha1.SchemeGroupVersion.WithResource("foos").GroupResource().String())
	}
	foos := make([]*samplev1alpha1.Foo, len(list.Items))
	for i := range list.Items {
		foos[i] = &list.Items[i]
	}
	return foos, nil
}

// world reads the children of all rows.
func (c *cluster) world(ctx context.Context, table []preview.Row) (*preview.World, error) {
	world := preview.NewWorld()
	for _, row := range table {
		list, err := c.list(ctx, row)
		if err != nil {
			return nil, describe(err, row.Resource.GroupResource().String())
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			world.Add(row.Resource, item.(preview.Object)) //nolint:forcetypeassert // the items are of the row's kind
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return world, nil
}

func (c *cluster) list(ctx context.Context, row preview.Row) (runtime.Object, error) {
	config := rest.CopyConfig(c.config)
	version := row.Resource.GroupVersion()
	config.GroupVersion, config.APIPath, config.ContentType = &version, "/apis", protobuf
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.AcceptContentTypes, config.NegotiatedSerializer = protobuf, scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	list, err := scheme.Scheme.New(version.WithKind(row.Kind + "List"))
	if err != nil {
		return nil, err
	}
	return list, client.Get().NamespaceIfScoped(c.namespace, c.namespace != "").Resource(row.Resource.Resource).Do(ctx).Into(list)
}

// describe says which permission is missing, if one is.
func describe(err error, resource string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the permission to list %s is missing: %w", resource, err)
	}
	return fmt.Errorf("listing %s: %w", resource, err)
}
