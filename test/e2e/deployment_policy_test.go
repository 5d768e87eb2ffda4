// SPDX-License-Identifier: Apache-2.0

// The admission policy: which writes of Deployments it accepts from the controller's
// account.

package e2e

import (
	"encoding/json"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// asController returns a client for the namespace's Deployments with the controller's
// token.
func (ns *namespace) asController(t *testing.T) typedappsv1.DeploymentInterface {
	t.Helper()
	client, err := kubernetes.NewForConfig(ns.in.account.config)
	if err != nil {
		t.Fatal(err)
	}
	return client.AppsV1().Deployments(ns.name)
}

// TestWithAStolenTokenOnlyAFoosDeploymentCanBeCreated runs no controller: somebody else
// uses its token.
func TestWithAStolenTokenOnlyAFoosDeploymentCanBeCreated(t *testing.T) {
	t.Parallel()
	client := newNamespace(t).asController(t)
	writes := []write{
		{"a Deployment like the controller's", func(*appsv1.Deployment) {}, ""},
		{"10 Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(10)) }, ""},
		{"11 Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
		{"no Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, onlyTenPods},
		{"no owner", setOwners(), onlyForAFoo},
		{"a Foo that is not the controller", setOwners(owner(func(r *metav1.OwnerReference) { r.Controller = new(false) })), onlyForAFoo},
		{"an owner of another kind", setOwners(owner(func(r *metav1.OwnerReference) { r.APIVersion, r.Kind, r.BlockOwnerDeletion = "v1", "ConfigMap", nil })), onlyForAFoo},
		{"a Foo of another group", setOwners(owner(func(r *metav1.OwnerReference) {
			r.APIVersion, r.BlockOwnerDeletion = "other.example.com/v1alpha1", nil
		})), onlyForAFoo},
		{"one more owner", setOwners(owner(func(*metav1.OwnerReference) {}), owner(func(r *metav1.OwnerReference) {
			r.APIVersion, r.Kind, r.UID, r.Controller, r.BlockOwnerDeletion = "v1", "ConfigMap", "1", nil, nil
		})), onlyForAFoo},
		{"a label", func(d *appsv1.Deployment) { d.Labels = map[string]string{"team": "red"} }, onlyPlain},
		{"an annotation", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"inject": "yes"} }, onlyPlain},
		{"a finalizer", func(d *appsv1.Deployment) { d.Finalizers = []string{hold} }, onlyPlain},
		{"a strategy", func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }, onlyPlain},
		{"a pause", func(d *appsv1.Deployment) { d.Spec.Paused = true }, onlyPlain},
		{"Pods that others' Service selects", func(d *appsv1.Deployment) { labelPods(d, "service", "bank") }, onlyItsLabels},
		{"Pods of another app", func(d *appsv1.Deployment) { labelPods(d, "app", "bank") }, onlyItsLabels},
		{"Pods of another Foo", func(d *appsv1.Deployment) { labelPods(d, "controller", "bar") }, onlyItsLabels},
		{"Pods with an annotation", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"inject": "yes"} }, onlyItsLabels},
		{"another container", func(d *appsv1.Deployment) {
			podOf(d).Containers = append(podOf(d).Containers, anotherContainer())
		}, onlyOne},
		{"only another container", func(d *appsv1.Deployment) { nginxOf(d).Name = "another" }, onlyOne},
	}
	writes = append(append(writes, containerWrites...), refusedWith(podWrites, onlyPlainPods)...)
	for _, w := range writes {
		t.Run(w.what, func(t *testing.T) {
			deployment := foosDeployment()
			w.change(deployment)
			_, err := client.Create(t.Context(), deployment, metav1.CreateOptions{DryRun: dryRun})
			isJudged(t, err, w.refusal)
		})
	}
}

func TestWithAStolenTokenOnlyOwnedFieldsCanBeChanged(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t) // the Foo must not be reconciled
	ns := newNamespace(t)
	ns.createFoosDeployment(t)
	writes := []write{
		{"nothing", func(*appsv1.Deployment) {}, ""},
		{"the size", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) }, ""},
		{"the owned labels, restored", func(d *appsv1.Deployment) { d.Spec.Template.Labels["app"] = "nginx" }, ""},
		{"more Pods than a Foo may ask for", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
		{"the owner, removed", setOwners(), onlyAFoos},
		{"the owner, to another Foo", func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "1" }, onlyAFoos},
		{"a label", func(d *appsv1.Deployment) { d.Labels = map[string]string{"team": "red"} }, keepMetadata},
		{"others' annotation", func(d *appsv1.Deployment) { d.Annotations["team"] = "red" }, keepMetadata},
		{"others' annotation, removed", func(d *appsv1.Deployment) { delete(d.Annotations, "team") }, keepMetadata},
		{"the consent to adoption, removed", spend, keepMetadata},
		{"all annotations, removed", func(d *appsv1.Deployment) { d.Annotations = nil }, keepMetadata},
		{"a finalizer", func(d *appsv1.Deployment) { d.Finalizers = []string{hold} }, keepMetadata},
		{"the strategy", func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}, keepSettings},
		{"a pause", func(d *appsv1.Deployment) { d.Spec.Paused = true }, keepSettings},
		{"Pods that others' Service selects", func(d *appsv1.Deployment) { d.Spec.Template.Labels["service"] = "bank" }, keepPodLabels},
		{"an empty label", func(d *appsv1.Deployment) { d.Spec.Template.Labels["service"] = "" }, keepPodLabels},
		{"others' label of the Pods, removed", func(d *appsv1.Deployment) { delete(d.Spec.Template.Labels, "team") }, keepPodLabels},
		{"an annotation of the Pods", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"inject": "yes"} }, keepPodLabels},
		{"another container", func(d *appsv1.Deployment) {
			podOf(d).Containers = append(podOf(d).Containers, anotherContainer())
		}, keepContainers},
		{"others' container, removed", func(d *appsv1.Deployment) { podOf(d).Containers = podOf(d).Containers[:1] }, keepContainers},
		{"others' container", func(d *appsv1.Deployment) { podOf(d).Containers[1].Command = shell }, keepContainers},
		{"the container nginx, removed", func(d *appsv1.Deployment) { podOf(d).Containers = podOf(d).Containers[1:] }, onlyNginx},
	}
	writes = append(append(writes, containerWrites...), refusedWith(podWrites, keepPods)...)
	ns.tryUpdates(t, "foo", writes)
}

// createFoosDeployment creates a Foo, and its Deployment as the controller would. Then it
// adds fields of others.
func (ns *namespace) createFoosDeployment(t *testing.T) {
	t.Helper()
	foo := ns.createFoo(t, newFoo("foo"))
	deployment := foosDeployment()
	deployment.OwnerReferences[0].UID = foo.UID
	if _, err := ns.asController(t).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mergePatch(t, ns.deployments(), "foo", `{"metadata":{"annotations":{"team":"blue","`+samplev1alpha1.AnnotationAdoptBy+`":"foo"}},"spec":{"template":{"metadata":{"labels":{"team":"blue"}}}}}`)
	ns.addContainer(t, "foo", "sidecar")
	ns.settledDeployment(t, "foo")
}

// addContainer adds a container to a Deployment, as an administrator.
func (ns *namespace) addContainer(t *testing.T, deployment, name string) {
	t.Helper()
	patch := `[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"` + name + `","image":"` + pauseImage + `"}}]`
	patchAs(t, ns.deployments(), deployment, "application/json-patch+json", patch)
}

// tryUpdates sends changes of a Deployment as dry runs.
func (ns *namespace) tryUpdates(t *testing.T, name string, writes []write) {
	t.Helper()
	client := ns.asController(t)
	for _, w := range writes {
		t.Run(w.what, func(t *testing.T) {
			deployment := ns.getDeployment(t, name)
			patch := patchOf(t, deployment, w.change)
			_, err := client.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
			isJudged(t, err, w.refusal)
		})
	}
}

// patchOf returns the JSON merge patch that changes an object. The controller's account may
// send patches of any type, and no updates.
func patchOf[T runtime.Object](t *testing.T, object T, change func(T)) []byte {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	change(object)
	after, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// TestThePolicyLetsTheControllerFixOwnedFields checks that the policy accepts the undoing
// of any drift.
func TestThePolicyLetsTheControllerFixOwnedFields(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.createFoosDeployment(t)
	mergePatch(t, ns.deployments(), "foo", `{"spec":{"replicas":20,"template":{"spec":{"containers":[`+
		`{"name":"sidecar","image":"`+pauseImage+`"},{"name":"another","image":"nginx:1","command":["true"]}]}}}}`)
	add := func(change func(*corev1.Container)) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			container := foosDeployment().Spec.Template.Spec.Containers[0]
			change(&container)
			podOf(d).Containers = append(podOf(d).Containers, container)
		}
	}
	ns.tryUpdates(t, "foo", []write{
		{"a missing container, with an autoscaler's replicas", add(func(*corev1.Container) {}), ""},
		{"a missing container, with a command", add(func(c *corev1.Container) { c.Command = shell }), onlyItsImage},
	})
	mergePatch(t, ns.deployments(), "foo", `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:1","args":["-v"]}]}}}}`)
	ns.tryUpdates(t, "foo", []write{
		{"the image", func(d *appsv1.Deployment) { nginxOf(d).Image = "nginx:latest" }, ""},
		{"the image and the arguments", func(d *appsv1.Deployment) { nginxOf(d).Image, nginxOf(d).Args = "nginx:latest", nil }, onlyItsImage},
	})
}

func TestWithAStolenTokenOthersDeploymentsCannotBeChanged(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.createDeployment(t, "others", 1)
	ns.settledDeployment(t, "others")
	take := func(d *appsv1.Deployment) {
		d.OwnerReferences = append(d.OwnerReferences, foosDeployment().OwnerReferences...)
		podOf(d).Containers = append(podOf(d).Containers, addedContainer())
	}
	takeAnd := func(more func(*appsv1.Deployment)) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			take(d)
			more(d)
		}
	}
	ns.tryUpdates(t, "others", []write{
		{"the size", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) }, onlyAFoos},
		{"the owner", take, onlyAFoos},
	})
	client := ns.asController(t)
	err := client.Delete(t.Context(), "others", deleting(metav1.DeletePropagationBackground))
	isJudged(t, err, onlyAFoos)

	mergePatch(t, ns.deployments(), "others", `{"metadata":{"annotations":{"`+samplev1alpha1.AnnotationAdoptBy+`":"foo"}}}`)
	ns.tryUpdates(t, "others", []write{
		{"the owner, with consent", take, ""},
		{"the owner and the labels, with consent", takeAnd(func(d *appsv1.Deployment) {
			maps.Copy(d.Spec.Template.Labels, foosDeployment().Spec.Template.Labels)
		}), ""},
		{"only the size", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) }, onlyAFoos},
		{"the owner, to another Foo", takeAnd(func(d *appsv1.Deployment) { d.OwnerReferences[0].Name = "bar" }), onlyAFoos},
		{"the owner, and a command for others' container", takeAnd(func(d *appsv1.Deployment) { podOf(d).Containers[0].Command = shell }), keepContainers},
		{"the owner, and a command for nginx", takeAnd(func(d *appsv1.Deployment) { nginxOf(d).Command = shell }), onlyItsImage},
	})
	mergePatch(t, ns.deployments(), "others", ownedBy("other.example.com", "foo", "1"))
	ns.tryUpdates(t, "others", []write{
		{"the owner, beside another that is the controller", func(d *appsv1.Deployment) {
			take(d)
			d.OwnerReferences[0].Controller = nil
		}, onlyAFoos},
	})
}

func deleting(how metav1.DeletionPropagation) metav1.DeleteOptions {
	return metav1.DeleteOptions{DryRun: dryRun, PropagationPolicy: &how}
}

func TestWithAStolenTokenAFoosDeploymentIsDeletedOnlyWithItsPods(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.createFoosDeployment(t)
	client := ns.asController(t)
	isJudged(t, client.Delete(t.Context(), "foo", deleting(metav1.DeletePropagationBackground)), "")
	isJudged(t, client.Delete(t.Context(), "foo", deleting(metav1.DeletePropagationOrphan)), "only with its Pods")
}
