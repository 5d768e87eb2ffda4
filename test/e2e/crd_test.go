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

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const (
	definitionName = "foos.samplecontroller.k8s.io"
	definitionFile = "artifacts/crd/samplecontroller.k8s.io_foos.yaml"
)

// definitionState is how the cluster got its CustomResourceDefinition.
type definitionState int

const (
	// definitionOurs: it was there, and is this tree's.
	definitionOurs definitionState = iota
	// definitionOther: one was there that is not this tree's. It is left as it is.
	definitionOther
	// definitionInstalled: this run has installed it, and removes it.
	definitionInstalled
)

func definitions(client dynamic.Interface) dynamic.ResourceInterface {
	return client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
}

// installDefinition installs the CustomResourceDefinition if there is none,
// and waits until the server serves it.
func (c *testCluster) installDefinition(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	wanted, err := readObject(filepath.Join(moduleRoot, definitionFile))
	if err != nil {
		return err
	}
	client := definitions(c.dynamic)
	found, err := client.Get(ctx, definitionName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.definition = definitionInstalled
		if _, err := client.Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("installing the CustomResourceDefinition: %w", err)
		}
	case err != nil:
		return fmt.Errorf("looking for the CustomResourceDefinition: %w", err)
	case c.accepts(ctx, found, wanted):
		c.definition = definitionOurs
	default:
		c.definition = definitionOther
		fmt.Printf("e2e: the cluster's %s is not %s: it is left as it is, and the tests of its rules and columns are skipped\n",
			definitionName, definitionFile)
	}
	_, err = untilList(ctx, client, named(definitionName), isEstablished)
	return err
}

// accepts tells whether a definition in the cluster is the wanted one. The
// server fills in defaults, so it is asked what the wanted one would become.
func (c *testCluster) accepts(ctx context.Context, found, wanted *unstructured.Unstructured) bool {
	candidate := found.DeepCopy()
	candidate.Object["spec"] = wanted.Object["spec"]
	result, err := definitions(c.dynamic).Update(ctx, candidate, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return err == nil && equality.Semantic.DeepEqual(found.Object["spec"], result.Object["spec"])
}

func isEstablished(list *unstructured.UnstructuredList) error {
	for i := range list.Items {
		conditions, _, _ := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions")
		for _, condition := range conditions {
			if condition, ok := condition.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
				return nil
			}
		}
	}
	return errors.New("the CustomResourceDefinition is not established")
}

// needsOurDefinition skips a test of what this tree's definition says where
// the cluster has another.
func needsOurDefinition(t *testing.T) {
	t.Helper()
	if cluster.definition == definitionOther {
		t.Skip("the cluster has another CustomResourceDefinition than " + definitionFile)
	}
}

// readObject reads the one object of a YAML file.
func readObject(path string) (*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &object.Object); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return object, nil
}
