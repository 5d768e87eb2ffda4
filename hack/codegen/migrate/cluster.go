// SPDX-License-Identifier: Apache-2.0

// What the steps read and write in a cluster.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	"example.com/sample-controller/hack/codegen/migrate/internal/shape"
)

const (
	// migrationLimit is how long rewriting all objects may take.
	migrationLimit = time.Hour
	pageSize       = 500
)

// migration is a kind of a cluster on its way from one version to another.
type migration struct {
	*shape.Declaration

	raw      *apiextensionsv1.CustomResourceDefinition
	crds     apiextensionsclient.CustomResourceDefinitionInterface
	kube     kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
	discover discovery.DiscoveryInterface
	out      io.Writer
	// settle is how long API servers may take to learn of a CustomResourceDefinition or a
	// policy.
	settle time.Duration
}

// setCRD brings the CustomResourceDefinition to a stage, and waits until API servers know.
// It changes only the versions.
func (m *migration) setCRD(ctx context.Context, stage shape.Stage, change func(*apiextensionsv1.CustomResourceDefinition)) error {
	want, err := m.CRD(m.raw, stage)
	if err != nil {
		return err
	}
	crd, err := m.crds.Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	crd.Spec.Versions = want.Spec.Versions
	if change != nil {
		change(crd)
	}
	if _, err := m.crds.Update(ctx, crd, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("bringing the CustomResourceDefinition %s to the stage %s: %w", m.Name, stage, err)
	}
	fmt.Fprintf(m.out, "  CustomResourceDefinition %s: %s; waiting %s for the API servers\n", m.Name, stage, m.settle)
	return sleep(ctx, m.settle)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// setPolicy creates the policy with its binding, or makes it equal, and waits until it is in
// force.
func (m *migration) setPolicy(ctx context.Context) error {
	policy := m.SyncPolicy()
	for resource, object := range map[string]any{
		"mutatingadmissionpolicies": policy, "mutatingadmissionpolicybindings": shape.Binding(policy),
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		client := m.dynamic.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource))
		_, err = client.Apply(ctx, policy.Name, &unstructured.Unstructured{Object: content}, metav1.ApplyOptions{FieldManager: "migrate", Force: true})
		if err != nil {
			return fmt.Errorf("applying the policy %s: %w", policy.Name, err)
		}
	}
	fmt.Fprintf(m.out, "  MutatingAdmissionPolicy %s; waiting %s for the API servers\n", policy.Name, m.settle)
	return sleep(ctx, m.settle)
}

func (m *migration) deletePolicy(ctx context.Context) error {
	client := m.kube.AdmissionregistrationV1()
	return errors.Join(
		ignoreNotFound(client.MutatingAdmissionPolicyBindings().Delete(ctx, m.SyncPolicyName(), metav1.DeleteOptions{})),
		ignoreNotFound(client.MutatingAdmissionPolicies().Delete(ctx, m.SyncPolicyName(), metav1.DeleteOptions{})),
		sleep(ctx, m.settle))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// hasPolicy reports whether the policy and its binding exist.
func (m *migration) hasPolicy(ctx context.Context) (bool, error) {
	_, err := m.kube.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Get(ctx, m.SyncPolicyName(), metav1.GetOptions{})
	if err == nil {
		_, err = m.kube.AdmissionregistrationV1().MutatingAdmissionPolicies().Get(ctx, m.SyncPolicyName(), metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// each calls a function for all objects of the kind, as seen in a version.
func (m *migration) each(ctx context.Context, version string, do func(*unstructured.Unstructured)) error {
	client := m.dynamic.Resource(schema.GroupVersionResource{Group: m.Group(), Version: version, Resource: m.Resource()})
	return pages(ctx, func(options metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, options) }, do)
}

// pages calls a function for all objects of a list.
func pages[T runtime.Object](ctx context.Context, list func(metav1.ListOptions) (runtime.Object, error), do func(T)) error {
	all := pager.New(pager.SimplePageFunc(list))
	all.PageSize = pageSize
	return all.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		do(item.(T)) //nolint:forcetypeassert // the lists have items of one type
		return nil
	})
}

// objects are the kind's objects, as far as the steps ask.
type objects struct {
	all        int
	incomplete []string       // those that lack one side of a change
	writers    map[string]int // who wrote through the other version, and in how many objects
	entries    int            // objects whose managedFields have entries of it
}

// scan reads all objects through a version, and counts what is of the other one.
func (m *migration) scan(ctx context.Context, version, other string) (objects, error) {
	found := objects{writers: map[string]int{}}
	err := m.each(ctx, version, func(object *unstructured.Unstructured) {
		found.all++
		if !m.IsComplete(object.Object) {
			found.incomplete = append(found.incomplete, object.GetNamespace()+"/"+object.GetName())
		}
		writers := sets.New[string]()
		for _, entry := range object.GetManagedFields() {
			if entry.APIVersion == m.Group()+"/"+other {
				writers.Insert(entry.Manager)
			}
		}
		for writer := range writers {
			found.writers[writer]++
		}
		if len(writers) > 0 {
			found.entries++
		}
	})
	return found, err
}

// generationAnnotation is the generation of the CustomResourceDefinition for which a
// StorageVersionMigration was made.
func (m *migration) generationAnnotation() string { return m.Group() + "/crd-generation" }

// migrated reports whether all objects have been rewritten since the CustomResourceDefinition
// was changed. Only the condition Succeeded proves it: in Kubernetes 1.37, a migration that
// failed sets status.storedVersions, too.
func (m *migration) migrated(ctx context.Context) (bool, error) {
	crd, err := m.crds.Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	all, err := m.kube.StoragemigrationV1().StorageVersionMigrations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.Items, func(svm storagemigrationv1.StorageVersionMigration) bool {
		return svm.Annotations[m.generationAnnotation()] == fmt.Sprint(crd.Generation) &&
			meta.IsStatusConditionTrue(svm.Status.Conditions, string(storagemigrationv1.MigrationSucceeded))
	}), nil
}

// rewrite makes the API server write each object again, through admission.
func (m *migration) rewrite(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrationLimit)
	defer cancel()
	for {
		err := m.runStorageVersionMigration(ctx)
		if !errors.Is(err, errUnservedVersion) {
			return err
		}
		fmt.Fprintln(m.out, "  The controller manager does not know yet that a version is not served any more; trying again")
		if err := sleep(ctx, m.settle); err != nil {
			return err
		}
	}
}

// errUnservedVersion is a failure of a StorageVersionMigration that the controller manager
// tried through a version which has just ceased to be served: it looks every 30 seconds.
var errUnservedVersion = errors.New("the version is not served")

func (m *migration) runStorageVersionMigration(ctx context.Context) error {
	crd, err := m.crds.Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	svms := m.kube.StoragemigrationV1().StorageVersionMigrations()
	svm, err := svms.Create(ctx, &storagemigrationv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: m.Resource() + "-", Annotations: map[string]string{m.generationAnnotation(): fmt.Sprint(crd.Generation)},
		},
		Spec: storagemigrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Group: m.Group(), Resource: m.Resource()}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a StorageVersionMigration (Kubernetes 1.37 or newer has them): %w", err)
	}
	shown := ""
	err = wait.PollUntilContextCancel(ctx, 2*time.Second, true, func(ctx context.Context) (bool, error) {
		now, err := svms.Get(ctx, svm.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range now.Status.Conditions {
			isNews := condition.Status == metav1.ConditionTrue && condition.Message != shown
			if isNews && condition.Type != string(storagemigrationv1.MigrationFailed) {
				shown = condition.Message
				fmt.Fprintf(m.out, "  StorageVersionMigration %s: %s\n", svm.Name, shown)
			}
		}
		return ended(now)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("StorageVersionMigration %s did not end within %s: does the controller manager run storage-version-migrator-controller? %w", svm.Name, migrationLimit, err)
	}
	return err
}

// ended reports whether a migration has succeeded, or returns an error if it has failed.
func ended(svm *storagemigrationv1.StorageVersionMigration) (bool, error) {
	conditions := svm.Status.Conditions
	failed := meta.FindStatusCondition(conditions, string(storagemigrationv1.MigrationFailed))
	switch {
	case failed == nil || failed.Status != metav1.ConditionTrue:
		return meta.IsStatusConditionTrue(conditions, string(storagemigrationv1.MigrationSucceeded)), nil
	case strings.Contains(failed.Message, "does not support discovery operations"):
		return false, errUnservedVersion
	}
	return false, fmt.Errorf("StorageVersionMigration %s failed, and stays so: %s. Make this write possible, and run this step again; status.storedVersions of the CustomResourceDefinition is not to be trusted", svm.Name, failed.Message)
}
