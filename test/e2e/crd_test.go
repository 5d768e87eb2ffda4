// SPDX-License-Identifier: Apache-2.0

// The CustomResourceDefinition in the cluster under test: whether it is this tree's, and
// its installation.

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
	crdName = "foos.samplecontroller.k8s.io"
	crdFile = "artifacts/crd/samplecontroller.k8s.io_foos.yaml"
)

// crdState says where the CustomResourceDefinition in the cluster came from.
type crdState int

const (
	// crdOurs means that this tree's CRD was installed already.
	crdOurs crdState = iota
	// crdOther means that another CRD was installed already. The tests do not change it.
	crdOther
	// crdInstalled means that this run installed the CRD, and removes it at the end.
	crdInstalled
)

func crdClient(client dynamic.Interface) dynamic.ResourceInterface {
	return client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
}

// installCRD installs the CRD if there is none, and waits until the API server serves it.
// It does the same with the CRDs of the program's other kinds.
func (c *testCluster) installCRD(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	if err := c.installOtherCRDs(ctx); err != nil {
		return err
	}
	wanted, err := readObject(filepath.Join(moduleRoot, crdFile))
	if err != nil {
		return err
	}
	client := crdClient(c.dynamic)
	found, err := client.Get(ctx, crdName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.crd = crdInstalled
		if _, err := client.Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("installing the CustomResourceDefinition: %w", err)
		}
	case err != nil:
		return fmt.Errorf("looking for the CustomResourceDefinition: %w", err)
	case c.accepts(ctx, found, wanted):
		c.crd = crdOurs
	default:
		c.crd = crdOther
		fmt.Printf("e2e: the cluster's %s differs from %s: it stays as it is, and the tests of its rules and columns are skipped\n",
			crdName, crdFile)
	}
	_, err = untilList(ctx, client, named(crdName), isEstablished)
	return err
}

func (c *testCluster) installOtherCRDs(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(moduleRoot, filepath.Dir(crdFile), "*.yaml"))
	if err != nil {
		return err
	}
	client := crdClient(c.dynamic)
	for _, file := range files {
		wanted, err := readObject(file)
		if err != nil {
			return err
		}
		name := wanted.GetName()
		if name == crdName {
			continue
		}
		_, err = client.Create(ctx, wanted, metav1.CreateOptions{})
		if err == nil {
			c.otherCRDs = append(c.otherCRDs, name)
		} else if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("installing the CustomResourceDefinition %s: %w", name, err)
		}
		if _, err := untilList(ctx, client, named(name), isEstablished); err != nil {
			return err
		}
	}
	return nil
}

// accepts reports whether a CRD in the cluster equals the wanted one. The API server sets
// defaults, so the wanted one is sent as a dry run first.
func (c *testCluster) accepts(ctx context.Context, found, wanted *unstructured.Unstructured) bool {
	candidate := found.DeepCopy()
	candidate.Object["spec"] = wanted.Object["spec"]
	result, err := crdClient(c.dynamic).Update(ctx, candidate, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
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

// needsOurCRD skips a test of this tree's CRD if the cluster has another one.
func needsOurCRD(t *testing.T) {
	t.Helper()
	if cluster.crd == crdOther {
		t.Skip("the cluster's CustomResourceDefinition differs from " + crdFile)
	}
}

// readObject reads a YAML file with one object.
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
