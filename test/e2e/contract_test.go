// SPDX-License-Identifier: Apache-2.0

// The contract: what Foos report, what kubectl prints and waits for, server-side apply, a restore from a
// backup, and the Pods of Foos from their creation to their deletion. The rows are the rest of it.

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	applyv1alpha1 "example.com/sample-controller/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// readyFoo creates a Foo, and waits until it is ready, whatever the state of others.
func (tr *trial) readyFoo(name, deployment string, replicas int32) {
	tr.t.Helper()
	tr.createFoo(name, deployment, replicas)
	tr.awaitReady(name)
}

// awaitPods waits until a Foo is as it should be, and reports a number of Pods that are available.
func (tr *trial) awaitPods(foo string, want int32) {
	tr.t.Helper()
	tr.await(fmt.Sprintf("Foo %s has %d Pods", foo, want), func(ctx context.Context) error {
		found, err := tr.foos().Get(ctx, foo, metav1.GetOptions{})
		if err == nil && found.Status.AvailableReplicas != want {
			err = fmt.Errorf("its status is %+v", found.Status)
		}
		return err
	})
	tr.awaitReady(foo)
}

// TestKubectlWaitAfterAScaleWaitsForTheNewSize runs kubectl wait while the status still
// reports Ready for the old size. Autoscalers use what the subresource scale says.
func TestKubectlWaitAfterAScaleWaitsForTheNewSize(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	first := tr.start()
	tr.settledFoo("foo", "foo", 1)
	tr.stop(first)
	tr.kubectl("scale", "foo/foo", "--replicas=3")
	wait := []string{"--namespace=" + tr.ns, "wait", "foo/foo", "--for=condition=Ready"}
	if out, err := tr.cluster.runKubectl(t.Context(), append(wait, "--timeout=1s")...); err == nil {
		t.Errorf("kubectl wait accepted a status that belongs to an older spec: %s", out)
	}

	tr.start()
	tr.cluster.kubectl(t, append(wait, timeout)...)
	if got := tr.foo("foo").Status.AvailableReplicas; got != 3 {
		t.Errorf("When kubectl wait returns, %d Pods are available, want 3", got)
	}
	scale := tr.kubectl("get", "foo/foo", "--subresource=scale",
		"--output=jsonpath={.spec.replicas} {.status.replicas} {.status.selector}")
	if want := "3 3 app=nginx,controller=foo"; scale != want {
		t.Errorf("The scale is %q, want %q", scale, want)
	}
	tr.kubectl("scale", "foo/foo", "--replicas=1")
	tr.awaitPods("foo", 1)
}

// expectRow checks what kubectl get prints of a Foo, between its name and its age.
func (tr *trial) expectRow(foo string, cells ...string) {
	tr.t.Helper()
	header, row, _ := strings.Cut(tr.kubectl("get", "fo", foo), "\n")
	footest.ExpectEqual(tr.t, "the columns", strings.Fields("NAME DEPLOYMENT DESIRED AVAILABLE READY REASON AGE"), strings.Fields(header))
	got := strings.Fields(row)
	footest.ExpectEqual(tr.t, "the row of "+foo, append([]string{foo}, cells...), got[:len(got)-1])
}

func TestKubectlGetShowsFoos(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	tr.start()
	tr.readyFoo("terminal", "web", 2)
	tr.readyFoo("empty-column", "empty-column", 0)
	tr.expectRow("terminal", "web", "2", "2", "True", "Available")
	tr.expectRow("empty-column", "empty-column", "1", "True", "Available")
	if selected := tr.kubectl("get", "fo", "-o=name", "--field-selector=spec.deploymentName=web"); selected != "foo.samplecontroller.k8s.io/terminal" {
		t.Errorf("of the Foos for the Deployment web, kubectl finds %q", selected)
	}
	if all := tr.kubectl("get", "all"); !strings.Contains(all, "foo.samplecontroller.k8s.io/terminal") {
		t.Errorf("kubectl get all does not show the Foo:\n%s", all)
	}
}

// TestAFooThatNoControllerHasSyncedIsPending also has the status of a Foo that upstream's
// controller left behind: it has no conditions.
func TestAFooThatNoControllerHasSyncedIsPending(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	tr.createFoo("new", "new", 2)
	tr.createFoo("left", "left", 2)
	tr.kubectl("patch", "foo", "left", "--subresource=status", "--type=merge", `--patch={"status":{"availableReplicas":2,"conditions":null}}`)
	tr.expectRow("new", "new", "2", "Unknown", samplev1alpha1.ReasonPending)
	tr.expectRow("left", "left", "2", "2", "Unknown", samplev1alpha1.ReasonPending)
	ready := footest.ReadyOf(tr.foo("new").Status)
	if ready.Message != "Waiting for the controller" || !ready.LastTransitionTime.Equal(new(metav1.Unix(0, 0))) {
		t.Errorf("The condition is %+v", ready)
	}
	tr.start()
	tr.stableAndQuiet()
	for _, foo := range []string{"new", "left"} {
		if since := footest.ReadyOf(tr.foo(foo).Status).LastTransitionTime; since.Unix() == 0 {
			t.Errorf("%s is ready since %v", foo, since)
		}
	}
}

// TestServerSideApplyWithTheTypedClient runs no controller, so that only the appliers
// write.
func TestServerSideApplyWithTheTypedClient(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	apply := func(manager string, spec *applyv1alpha1.FooSpecApplyConfiguration) (*samplev1alpha1.Foo, error) {
		foo := applyv1alpha1.Foo("applied", tr.ns).WithSpec(spec)
		return tr.foos().Apply(t.Context(), foo, metav1.ApplyOptions{FieldManager: manager})
	}
	spec := func() *applyv1alpha1.FooSpecApplyConfiguration {
		return applyv1alpha1.FooSpec().WithDeploymentName("web")
	}
	_, err := apply("alice", spec().WithReplicas(2))
	footest.Must(t, err)
	_, err = apply("bob", spec().WithReplicas(3))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "alice": .spec.replicas`) {
		t.Errorf("Bob's apply returned %v, want a conflict that names alice and the field", err)
	}
	got, err := apply("alice", spec())
	footest.Must(t, err)
	if got.Spec.Replicas != nil {
		t.Errorf("Replicas is %d, but its only manager does not apply it any more", *got.Spec.Replicas)
	}

	for manager, condition := range map[string]string{"alice": "Ready", "bob": "Pretty"} {
		status := applyv1alpha1.FooStatus().WithConditions(applymetav1.Condition().WithType(condition).
			WithStatus(metav1.ConditionTrue).WithReason("Said").WithMessage("").WithLastTransitionTime(metav1.Now()))
		foo := applyv1alpha1.Foo("applied", tr.ns).WithStatus(status)
		got, err = tr.foos().ApplyStatus(t.Context(), foo, metav1.ApplyOptions{FieldManager: manager})
		footest.Must(t, err)
	}
	if len(got.Status.Conditions) != 2 {
		t.Errorf("The conditions are %v, want that of each manager", got.Status.Conditions)
	}
}

func TestAFoosDeploymentRunsItsPods(t *testing.T) {
	t.Parallel()
	all := newTrial(t)
	all.start()
	for sentence, check := range map[string]func(*trial){
		"a Foo's Pods become ready, and go with it":                        checkPodsOfADeletedFoo,
		"a Deployment created by hand is adopted with its own selector":    checkAdoptionByHand,
		"what the API server refuses is told apart by the text it answers": checkRefusals,
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			check(all.in(t))
		})
	}
}

// podsOf returns a Foo's Pods.
func (tr *trial) podsOf(foo string) []corev1.Pod {
	tr.t.Helper()
	selected := metav1.ListOptions{LabelSelector: "app=nginx,controller=" + foo}
	pods, err := tr.cluster.kube.CoreV1().Pods(tr.ns).List(tr.ctx, selected)
	tr.must(err)
	return pods.Items
}

func checkPodsOfADeletedFoo(tr *trial) {
	tr.readyFoo("with-pods", "with-pods", 2)
	pods := tr.podsOf("with-pods")
	for i := range pods {
		node, containers := pods[i].Spec.NodeName, pods[i].Spec.Containers
		if node == "" || len(containers) != 1 || containers[0].Name != "nginx" || containers[0].Image != "nginx:latest" {
			tr.t.Errorf("On the node %q there are the containers %v, want one nginx", node, containers)
		}
	}
	if len(pods) != 2 {
		tr.t.Errorf("There are %d Pods, want 2", len(pods))
	}
	tr.deleteFoo("with-pods", metav1.DeletePropagationBackground)
	tr.awaitGone("with-pods")
	tr.await("its ReplicaSet and Pods are gone", func(context.Context) error {
		left := tr.kubectl("get", "replicasets,pods", "--selector=controller=with-pods", "-o=name", "--ignore-not-found")
		if left != "" {
			return fmt.Errorf("there are %s", left)
		}
		return nil
	})
}

// checkAdoptionByHand uses kubectl create deployment, whose selector differs from the
// controller's, and the command that the Foo's message quotes.
func checkAdoptionByHand(tr *trial) {
	tr.kubectl("create", "deployment", "byhand", "--image=nginx")
	tr.createFoo("hopeful", "byhand", 2)
	message := tr.awaitReason("hopeful", samplev1alpha1.ReasonDeploymentConflict, "byhand", "'kubectl ")
	_, rest, _ := strings.Cut(message, "'kubectl ")
	command, _, _ := strings.Cut(rest, "'")
	tr.kubectl(strings.Fields(command)...)
	tr.awaitReady("hopeful")
	if app := tr.deployment("byhand").Spec.Template.Labels["app"]; app != "byhand" {
		tr.t.Errorf("The Pods' label app is %q, which the selector does not match", app)
	}
}

// checkRefusals checks with a real API server what the metric of refusals, and with it the
// page for a lost permission, rests on.
func checkRefusals(all *trial) {
	tr := newTrial(all.t)
	tr.setQuota("count/deployments.apps", "0")
	controller, err := kubernetes.NewForConfig(tr.account.Config)
	tr.must(err)
	deployments, secrets := controller.AppsV1().Deployments(tr.ns), controller.CoreV1().Secrets(tr.ns)
	create := metav1.CreateOptions{DryRun: dryRun}
	made := footest.UnstoredDeployment("foo")
	plain, empty := made.DeepCopy(), made.DeepCopy()
	plain.OwnerReferences = nil
	empty.Spec.Template.Spec.Containers = nil
	_, quota := deployments.Create(tr.ctx, made, create)
	_, policy := deployments.Create(tr.ctx, plain, create)
	_, mayNotCreate := secrets.Create(tr.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, create)
	_, mayNotPatch := secrets.Patch(tr.ctx, "a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	_, invalid := tr.deployments().Create(tr.ctx, empty, create)
	for err, want := range map[error]string{
		quota:        failure.Quota,
		policy:       failure.Policy,
		mayNotCreate: failure.Permission,
		mayNotPatch:  failure.Permission,
		invalid:      failure.Other,
	} {
		if got := failure.CauseOf(err); got != want {
			tr.t.Errorf("Refused by %q, want %q: %v", got, want, err)
		}
	}
}

// applyText applies a manifest. %[1]s in it is the trial's namespace, and %[2]s the run's label.
func (tr *trial) applyText(name, text string) {
	tr.t.Helper()
	labels := fmt.Sprintf("{%s: '%s'}", runLabel, run.id)
	tr.kubectl("apply", "-f="+writeFile(tr.t, tr.t.TempDir(), name, fmt.Sprintf(text, tr.ns, labels)))
}

func TestPodsRunInARestrictedNamespace(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	tr.kubectl("label", "namespace", tr.ns, "pod-security.kubernetes.io/enforce=restricted")
	tr.start()
	tr.readyFoo("restricted", "restricted", 1)
	pods := tr.podsOf("restricted")
	if len(pods) != 1 || len(pods[0].Spec.Containers[0].VolumeMounts) != 2 {
		t.Errorf("The Pods are %v, want one with two empty volumes and no token", pods)
	}
}

// TestThePlatformChoosesThePodsUser has a namespace that accepts only users of its own, as OpenShift's default rule does.
func TestThePlatformChoosesThePodsUser(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	tr.applyText("users.yaml", `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s-users, labels: %[2]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  validations: [{expression: '!has(object.spec.securityContext.runAsUser) || object.spec.securityContext.runAsUser >= 1000680000'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s-users, labels: %[2]s}
spec: {policyName: %[1]s-users, validationActions: [Deny]}
`)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: footest.Created("probe").Spec.Template.Spec}
	footest.Must(t, testcluster.AwaitAnswer(t.Context(), patience, "the user 101 is refused", func(ctx context.Context) error {
		_, err := tr.cluster.kube.CoreV1().Pods(tr.ns).Create(ctx, pod, metav1.CreateOptions{DryRun: dryRun})
		return err
	}, apierrors.IsInvalid))
	tr.start("-omit-pod-user")
	tr.readyFoo("any-user", "any-user", 1)
	for _, pod := range tr.podsOf("any-user") {
		if context := pod.Spec.SecurityContext; context.RunAsUser != nil || !*context.RunAsNonRoot {
			t.Errorf("The Pod's security context is %v, want one without user that excludes root", context)
		}
	}
}
