// SPDX-License-Identifier: Apache-2.0

// What users, other writers, and policies and webhooks do in a trial, and what is waited for.

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	typedfoo "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// somebody is the field manager of other writers.
const somebody = "somebody"

// held and released are patches that add a finalizer, and remove it.
const (
	held     = `{"metadata":{"finalizers":["faults.example.com/hold"]}}`
	released = `{"metadata":{"finalizers":null}}`
)

func (tr *trial) foos() typedfoo.FooInterface {
	return tr.cluster.foos.SamplecontrollerV1alpha1().Foos(tr.ns)
}

func (tr *trial) deployments() typedappsv1.DeploymentInterface {
	return tr.cluster.kube.AppsV1().Deployments(tr.ns)
}

func (tr *trial) foo(name string) *samplev1alpha1.Foo {
	foo, err := tr.foos().Get(tr.ctx, name, metav1.GetOptions{})
	tr.must(err)
	return foo
}

func (tr *trial) deployment(name string) *appsv1.Deployment {
	d, err := tr.deployments().Get(tr.ctx, name, metav1.GetOptions{})
	tr.must(err)
	return d
}

// newFoo returns a Foo with a Deployment name and a number of replicas. With 0 it leaves that to others.
func newFoo(name, deployment string, replicas int32) *samplev1alpha1.Foo {
	foo := footest.FooOwner.New(name, deployment, replicas).(*samplev1alpha1.Foo)
	foo.Namespace = ""
	return foo
}

func (tr *trial) createFoo(name, deployment string, replicas int32) {
	tr.t.Helper()
	_, err := tr.foos().Create(tr.ctx, newFoo(name, deployment, replicas), metav1.CreateOptions{})
	tr.must(err)
}

// settledFoo creates a Foo and waits until it is as it should be.
func (tr *trial) settledFoo(name, deployment string, replicas int32) {
	tr.createFoo(name, deployment, replicas)
	tr.stableAndQuiet()
}

func (tr *trial) scaleFoo(name string, replicas int32) {
	tr.patchFoo(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// renameDeployment makes a Foo ask for a Deployment of another name.
func (tr *trial) renameDeployment(foo, deployment string) {
	tr.patchFoo(foo, fmt.Sprintf(`{"spec":{"deploymentName":%q}}`, deployment))
}

func (tr *trial) patchFoo(name, patch string) {
	_, err := tr.foos().Patch(tr.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	tr.must(err)
}

func (tr *trial) deleteFoo(name string, how metav1.DeletionPropagation) {
	tr.must(tr.foos().Delete(tr.ctx, name, metav1.DeleteOptions{PropagationPolicy: &how}))
}

// newDeployment returns a Deployment like that of a Foo, with one Pod and without an
// owner.
func newDeployment(name string, options ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := footest.UnstoredDeployment(name)
	d.OwnerReferences, d.Spec.Replicas = nil, new(int32(1))
	for _, option := range options {
		option(d)
	}
	return d
}

// foreignUID is the UID of an owner that does not exist.
const foreignUID = "00000000-0000-0000-0000-000000000001"

// ownedBy makes another object the controller of a Deployment.
func ownedBy(name string, uid types.UID, apiVersion, kind string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: new(true)},
		}
	}
}

// createDeployment creates a Deployment as another writer.
func (tr *trial) createDeployment(name string, options ...func(*appsv1.Deployment)) *appsv1.Deployment {
	created, err := tr.deployments().Create(tr.ctx, newDeployment(name, options...),
		metav1.CreateOptions{FieldManager: somebody})
	tr.must(err)
	return created
}

// patchDeployment patches a Deployment as another writer.
func (tr *trial) patchDeployment(name, patch string) *appsv1.Deployment {
	patched, err := tr.deployments().Patch(tr.ctx, name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: somebody})
	tr.must(err)
	return patched
}

func (tr *trial) scaleDeployment(name string, replicas int32) {
	tr.patchDeployment(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (tr *trial) deleteDeployment(name string) {
	background := metav1.DeletePropagationBackground
	tr.must(tr.deployments().Delete(tr.ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}))
}

// annotate adds an annotation to a Deployment as another writer. The oracle checks that
// the annotation stays.
func (tr *trial) annotate(deployment, value string) {
	annotations := map[string]string{somebody: value}
	tr.patchDeployment(deployment, annotating(annotations))
	tr.protectAnnotations(deployment, annotations)
}

// annotating returns a patch that sets annotations.
func annotating(annotations map[string]string) string {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		panic(err) // strings can always be written as JSON
	}
	return string(patch)
}

// takeAway makes Deployment a one that no Foo controls, and protects it.
func (tr *trial) takeAway() {
	tr.protect(tr.patchDeployment("a", `{"metadata":{"ownerReferences":null}}`))
}

// setQuota creates a quota for one resource, or changes it, and waits until it is in force. The API
// server refuses by a cache of quotas, so the quota also forbids Leases: one is refused when the
// cache has it.
func (tr *trial) setQuota(name corev1.ResourceName, limit string) {
	quotas := tr.cluster.kube.CoreV1().ResourceQuotas(tr.ns)
	hard := corev1.ResourceList{name: resource.MustParse(limit), "count/leases.coordination.k8s.io": resource.MustParse("0")}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	quota := applycorev1.ResourceQuota("few", tr.ns).WithSpec(applycorev1.ResourceQuotaSpec().WithHard(hard))
	_, err := quotas.Apply(tr.ctx, quota, metav1.ApplyOptions{FieldManager: somebody})
	tr.must(err)
	tr.await("the quota is in force", func(ctx context.Context) error {
		found, err := quotas.Get(ctx, *quota.Name, metav1.GetOptions{})
		if err == nil && (len(found.Status.Used) == 0 || !equality.Semantic.DeepEqual(found.Status.Hard, hard)) {
			err = fmt.Errorf("its status is %+v", found.Status)
		}
		if err != nil {
			return err
		}
		_, err = tr.cluster.kube.CoordinationV1().Leases(tr.ns).Create(ctx, lease, metav1.CreateOptions{DryRun: dryRun})
		if !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("a Lease is accepted"), err)
		}
		return nil
	})
}

// createRole creates a Role in the trial's namespace, and binds it to a service account.
func (tr *trial) createRole(name string, rules []rbacv1.PolicyRule, namespace, account string) *rbacv1.Role {
	rbac, meta := tr.cluster.kube.RbacV1(), metav1.ObjectMeta{Name: name}
	role, err := rbac.Roles(tr.ns).Create(tr.ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	tr.must(err)
	_, err = rbac.RoleBindings(tr.ns).Create(tr.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}, metav1.CreateOptions{})
	tr.must(err)
	return role
}

// awaitDeployment waits until a Deployment exists and is right.
func (tr *trial) awaitDeployment(what, name string, check func(*appsv1.Deployment) error) {
	tr.await("Deployment "+name+" "+what, func(ctx context.Context) error {
		d, err := tr.deployments().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return check(d)
	})
}

// awaitSettled waits until the cluster's own controllers no longer write to a Deployment, and returns its version.
func (tr *trial) awaitSettled(name string) (version string) {
	tr.t.Helper()
	tr.awaitDeployment("has settled", name, func(d *appsv1.Deployment) error {
		version = d.ResourceVersion
		if busy := footest.Primary.Busy(d); busy != "" {
			return errors.New(busy)
		}
		return nil
	})
	return version
}

// awaitReplicas waits until the spec of a Deployment has a number of replicas.
func (tr *trial) awaitReplicas(name string, want int32) {
	tr.awaitDeployment(fmt.Sprintf("asks for %d Pods", want), name, func(d *appsv1.Deployment) error {
		if *d.Spec.Replicas != want {
			return fmt.Errorf("it asks for %d", *d.Spec.Replicas)
		}
		return nil
	})
}

// awaitGone waits until a Deployment does not exist.
func (tr *trial) awaitGone(deployment string) {
	tr.await("Deployment "+deployment+" is gone", func(ctx context.Context) error {
		_, err := tr.deployments().Get(ctx, deployment, metav1.GetOptions{})
		return goneOr(err)
	})
}

// goneOr returns nil if the answer to a read says that the object does not exist.
func goneOr(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return cmp.Or(err, errors.New("it still exists or was recreated"))
}

// serves fails if a Deployment no longer has the given number of Pods.
func (tr *trial) serves(deployment string, replicas int32) {
	d := tr.deployment(deployment)
	if asked, available := *d.Spec.Replicas, d.Status.AvailableReplicas; asked != replicas || available != replicas {
		tr.failf("Deployment %s has %d of %d Pods, and had %d", deployment, available, asked, replicas)
	}
}

// whileRefused acts while someone refuses a write that a Foo needs. The Foo must report the
// reason, and the write must not be repeated all the time. afterwards ends the refusal.
func (tr *trial) whileRefused(foo, reason string, act, afterwards func()) {
	began := time.Now()
	tr.phase, tr.expected.refused[foo] = "while a write is refused", reason
	act()
	tr.stableAndQuiet()
	// More than an exponential back-off makes in some minutes if it starts with milliseconds.
	const maxAttempts = 25
	if attempts := len(tr.made(since(began), isDeploymentWrite)); attempts > maxAttempts {
		tr.failf("%d writes to Deployments in %v", attempts, time.Since(began).Round(time.Second))
	}
	tr.phase = "after that"
	delete(tr.expected.refused, foo)
	afterwards()
}

// Operations that a policy applies to.
const (
	creates = "CREATE"
	updates = "UPDATE"
)

// denialText begins the message of a policy.
const denialText = "Denied by the test"

// manifest is the data of the templates in testdata.
type manifest struct {
	Namespace, Denial, Deployment, More string
	// Operations are separated by commas.
	Operations string
	// Path is the field that a policy changes, and Value, in CEL, its new value.
	Path, Value string
}

// apply creates the objects of a template. withdraw deletes them. kubectl takes a comma in the
// name of a file for the end of it, so cases that call it have none in theirs.
func (tr *trial) apply(name string, m manifest) {
	layout, err := template.ParseFiles(filepath.Join("testdata", name))
	tr.must(err)
	m.Namespace, m.Denial = tr.ns, denialText
	file, err := os.Create(filepath.Join(tr.t.TempDir(), name))
	tr.must(err)
	defer file.Close()
	tr.must(layout.Execute(file, m))
	tr.applied = append(tr.applied, file.Name())
	tr.kubectl("apply", "-f", file.Name())
}

// withdraw deletes the trial's policies and webhook.
func (tr *trial) withdraw() {
	for _, file := range tr.applied {
		tr.kubectl("delete", "-f", file)
	}
	tr.applied = nil
}

// awaitAdmission waits until the answer to a create or an update is right. The API server
// applies a policy a little later than it stores it.
func (tr *trial) awaitAdmission(
	what, operation string, asked *appsv1.Deployment, right func(*appsv1.Deployment, error) bool,
) {
	tr.await(what, func(ctx context.Context) error {
		answer, err := tr.deployments().Create(ctx, asked, metav1.CreateOptions{DryRun: dryRun})
		if operation == updates {
			answer, err = tr.deployments().Patch(ctx, asked.Name, types.MergePatchType,
				[]byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{DryRun: dryRun})
		}
		if !right(answer, err) {
			return errors.Join(errors.New("not yet"), err)
		}
		return nil
	})
}

// deny creates an admission policy that refuses an operation on one Deployment, and waits
// until it is in force. more is appended to its message.
func (tr *trial) deny(deployment, operation, more string) {
	tr.apply("deny.yaml", manifest{Deployment: deployment, Operations: operation, More: more})
	denied := func(_ *appsv1.Deployment, err error) bool {
		return err != nil && strings.Contains(err.Error(), denialText)
	}
	tr.awaitAdmission("the policy is in force", operation, newDeployment(deployment), denied)
}

// mutation is a policy that changes each Deployment that is written.
type mutation struct {
	path, value string
	inForce     func(*appsv1.Deployment) bool
}

// capping leaves two replicas.
func capping() mutation {
	return mutation{"/spec/replicas", "2", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 }}
}

// mutate creates an admission policy that changes Deployments at some operations, and waits
// until it is in force.
func (tr *trial) mutate(m mutation, operations string) {
	tr.apply("mutate.yaml", manifest{Path: m.path, Value: m.value, Operations: operations})
	tr.awaitMutating(m, true)
}

// awaitMutating waits until a policy is in force, or no longer.
func (tr *trial) awaitMutating(m mutation, inForce bool) {
	probe := newDeployment("probe")
	probe.Spec.Replicas = new(int32(3))
	what := fmt.Sprintf("the policy is in force: %v", inForce)
	tr.awaitAdmission(what, creates, probe, func(d *appsv1.Deployment, err error) bool {
		return err == nil && m.inForce(d) == inForce
	})
}
