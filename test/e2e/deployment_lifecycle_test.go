// SPDX-License-Identifier: Apache-2.0

// Deployments: from the creation of a Foo to its deletion, and the quotas that limit the
// Pods of a user who may write Foos.

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/sample-controller/internal/failure"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const quotaOfFoos = "count/foos." + samplev1alpha1.GroupName

// TestQuotasThatLimitPods checks the quotas that docs/operations.md recommends. A quota
// of Foos does not limit Pods: whoever may write Foos can delete one, leave its
// Deployment (--cascade=orphan), and create the next.
func TestQuotasThatLimitPods(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	newNamespace(t).awaitQuotaOfFoos(t)
	for _, row := range []struct {
		name  string
		quota corev1.ResourceList
		// refusal is part of the second Foo's message, or "" if the quota does not limit
		// Pods.
		refusal     string
		deployments int
	}{
		{"of Foos only, which does not limit Pods", nil, "", 2},
		{"of Deployments", corev1.ResourceList{"count/deployments.apps": resource.MustParse("1")}, "The API server refused: ", 1},
		{"of Pods", corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}, "cannot create its Pods", 2},
		{"of CPU", corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("200m")}, "cannot create its Pods", 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			ns.limitContainers(t, "100m")
			hard := corev1.ResourceList{quotaOfFoos: resource.MustParse("1")}
			maps.Copy(hard, row.quota)
			ns.setQuotas(t, hard)
			ns.startController(t)
			ns.createReadyFoo(t, newFoo("first", withReplicas(2)))
			ns.deleteFoo(t, "first", metav1.DeletePropagationOrphan)
			awaitGone(t, ns.foos(), "first")
			ns.createWhenCounted(t, newFoo("second", withReplicas(2)))
			if row.refusal == "" {
				ns.awaitReady(t, "second")
			} else {
				message := readyOf(ns.awaitReason(t, "second", samplev1alpha1.ReasonDeploymentFailed)).Message
				if !strings.Contains(message, row.refusal) || !strings.Contains(message, "exceeded quota: limit") {
					t.Errorf("The message is %q, want %q and the quota", message, row.refusal)
				}
			}
			ns.hasWorkloads(t, row.deployments, row.refusal == "")
		})
	}
}

// TestRefusalsAreToldApart checks with a real API server what the metric of refusals, and
// with it the page for a lost permission, rests on.
func TestRefusalsAreToldApart(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.setQuotas(t, corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")})
	controller, err := kubernetes.NewForConfig(ns.in.account.config)
	if err != nil {
		t.Fatal(err)
	}
	deployments, secrets := controller.AppsV1().Deployments(ns.name), controller.CoreV1().Secrets(ns.name)
	create := metav1.CreateOptions{DryRun: dryRun}
	plain := foosDeployment()
	plain.OwnerReferences = nil
	_, quota := deployments.Create(t.Context(), foosDeployment(), create)
	_, policy := deployments.Create(t.Context(), plain, create)
	_, mayNotCreate := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, create)
	_, mayNotPatch := secrets.Patch(t.Context(), "a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	_, invalid := ns.deployments().Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, create)
	for err, want := range map[error]string{
		quota: failure.Quota, policy: failure.Policy, mayNotCreate: failure.Permission, mayNotPatch: failure.Permission, invalid: failure.Other,
	} {
		if got := failure.CauseOf(err); got != want {
			t.Errorf("Refused by %q, want %q: %v", got, want, err)
		}
	}
}

// awaitQuotaOfFoos waits until the quota controller knows Foos. It discovers new kinds
// every 30 s, and does not recount before a quota changes.
func (ns *namespace) awaitQuotaOfFoos(t *testing.T) {
	t.Helper()
	quotas := cluster.kube.CoreV1().ResourceQuotas(ns.name)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{quotaOfFoos: resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	for limit := 2; err == nil; limit++ {
		_, err = quotas.Patch(t.Context(), "probe", types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"hard":{%q:"%d"}}}`, quotaOfFoos, limit), metav1.PatchOptions{})
		if err == nil && counts(t, quotas, int64(limit)) {
			return
		}
	}
	t.Fatal(err)
}

// counts waits until the quota controller has seen the limit, and reports whether it
// counts Foos.
func counts(t *testing.T, quotas typedcorev1.ResourceQuotaInterface, limit int64) (counted bool) {
	t.Helper()
	awaitOne(t, "the quota controller has seen the limit", quotas, "probe", func(quota *corev1.ResourceQuota) error {
		seen := quota.Status.Hard[quotaOfFoos]
		if seen.Value() != limit {
			return errNone
		}
		_, counted = quota.Status.Used[quotaOfFoos]
		return nil
	})
	return counted
}

// limitContainers sets a default CPU request for containers, which a quota of CPU needs.
func (ns *namespace) limitContainers(t *testing.T, cpu string) {
	t.Helper()
	_, err := cluster.kube.CoreV1().LimitRanges(ns.name).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "containers"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// createWhenCounted creates a Foo as soon as the quota no longer counts the previous one.
func (ns *namespace) createWhenCounted(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, cluster.patience(), true, func(ctx context.Context) (bool, error) {
		_, err := ns.foos().Create(ctx, foo, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// hasWorkloads checks the number of Deployments, and that there are 2 Pods, or 4 if both
// Deployments have theirs.
func (ns *namespace) hasWorkloads(t *testing.T, deployments int, both bool) {
	t.Helper()
	list, err := ns.deployments().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := ns.pods().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wanted := 2
	if both {
		wanted = 4
	}
	if len(list.Items) != deployments || len(pods.Items) != wanted {
		t.Errorf("There are %d Deployments and %d Pods, want %d and %d", len(list.Items), len(pods.Items), deployments, wanted)
	}
}

func TestAFoosDeploymentRunsItsPods(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"the Pods of a created Foo become ready", checkPodsOfACreatedFoo},
		{"a Foo that leaves replicas out gets one Pod", checkReplicasLeftOut},
		{"a deleted Foo's ReplicaSet and Pods are garbage collected", checkPodsOfADeletedFoo},
		{"a Deployment created by hand is adopted with its own selector", checkAdoptionByHand},
		{"an autoscaler's replicas stay, however often they change", checkAutoscaled},
	})
}

func TestPodsRunInARestrictedNamespace(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := cluster.kube.CoreV1().Namespaces().Patch(t.Context(), ns.name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.startController(t)
	ns.createReadyFoo(t, newFoo("restricted", withReplicas(1)))
	pod := ns.awaitPods(t, podsOf("restricted"), 1)[0]
	if len(pod.Spec.Containers[0].VolumeMounts) != 2 {
		t.Errorf("The Pod mounts %v, want two empty volumes and no token", pod.Spec.Containers[0].VolumeMounts)
	}
}

func checkPodsOfACreatedFoo(t *testing.T, ns *namespace) {
	foo := ns.createFoo(t, newFoo("with-pods", withReplicas(2)))

	deployment := awaitOne(t, "the Deployment is created", ns.deployments(), "with-pods", func(d *appsv1.Deployment) error {
		return isControlled(d, foo)
	})
	if err := asksFor(deployment, 2); err != nil {
		t.Error(err)
	}
	if got := deployment.Spec.Template.Spec.Containers; len(got) != 1 || got[0].Name != "nginx" || got[0].Image != "nginx:latest" {
		t.Errorf("Its containers are %v, want one nginx", got)
	}
	ns.awaitPods(t, podsOf("with-pods"), 2)
	ns.awaitReplicas(t, "with-pods", 2)
}

func checkReplicasLeftOut(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("left-out"))
	ns.awaitReplicas(t, "left-out", 1)
	if got := podNames(t, ns, "left-out"); len(got) != 1 {
		t.Errorf("The Pods are %v, want one", got)
	}
}

func checkPodsOfADeletedFoo(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("without-pods"))
	background := metav1.DeletePropagationBackground
	if err := ns.foos().Delete(t.Context(), "without-pods", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}

	awaitGone(t, ns.foos(), "without-pods")
	awaitGone(t, ns.deployments(), "without-pods")
	awaitList(t, "the ReplicaSet is gone", ns.replicaSets(), podsOf("without-pods"), func(sets *appsv1.ReplicaSetList) error {
		return isEmpty(len(sets.Items))
	})
	awaitList(t, "the Pods are gone", ns.pods(), podsOf("without-pods"), func(pods *corev1.PodList) error {
		return isEmpty(len(pods.Items))
	})
}

func isEmpty(left int) error {
	if left > 0 {
		return fmt.Errorf("%d are left", left)
	}
	return nil
}

// checkAdoptionByHand uses kubectl create deployment, whose selector differs from the
// controller's.
func checkAdoptionByHand(t *testing.T, ns *namespace) {
	ns.kubectl(t, "create", "deployment", "byhand", "--image=nginx")
	ns.createFoo(t, newFoo("hopeful", withChild("byhand"), withReplicas(2)))
	ns.kubectl(t, commandIn(t, readyOf(ns.awaitConflict(t, "hopeful")).Message)...)
	ns.awaitReady(t, "hopeful")
	if app := ns.getDeployment(t, "byhand").Spec.Template.Labels["app"]; app != "byhand" {
		t.Errorf("The Pods' label app is %q, which the selector does not match", app)
	}
}

func checkAutoscaled(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("elastic"))
	for _, replicas := range []int32{3, 1, 2} {
		scale, err := ns.deployments().GetScale(t.Context(), "elastic", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		scale.Spec.Replicas = replicas
		scale.ResourceVersion = ""
		if _, err := ns.deployments().UpdateScale(t.Context(), "elastic", scale, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		ns.awaitReplicas(t, "elastic", replicas)
		if err := asksFor(ns.getDeployment(t, "elastic"), replicas); err != nil {
			t.Error(err)
		}
	}
	settled := ns.settledDeployment(t, "elastic")
	ns.awaitSyncs(t)
	ns.isSameVersion(t, settled)
}

func TestADeploymentThatCannotCreatePodsIsReported(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.setQuota(t, corev1.ResourcePods, "0")
	ns.startController(t, "-resync=0")
	ns.createFoo(t, newFoo("barren", withReplicas(1)))
	foo := ns.awaitReason(t, "barren", samplev1alpha1.ReasonDeploymentFailed)
	if message := readyOf(foo).Message; !strings.Contains(message, `"barren" cannot create its Pods`) || !strings.Contains(message, "exceeded quota: limit") {
		t.Errorf("The message %q does not say what failed and why", message)
	}
	awaitEvent(t, ns, "barren", corev1.EventTypeWarning, samplev1alpha1.ReasonDeploymentFailed)

	if err := cluster.kube.CoreV1().ResourceQuotas(ns.name).Delete(t.Context(), "limit", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.awaitReady(t, "barren")
}

// podsOf selects a Foo's Pods.
func podsOf(foo string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "app=nginx,controller=" + foo}
}

// podNames returns the names of a Foo's Pods.
func podNames(t *testing.T, ns *namespace, foo string) []string {
	t.Helper()
	pods, err := ns.pods().List(t.Context(), podsOf(foo))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}
