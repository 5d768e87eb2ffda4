// SPDX-License-Identifier: Apache-2.0

// Deployments: the image that an overlay sets, two installations that share a namespace, their Pods from
// the creation of a Foo to its deletion, and the limits of a namespace.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

func (ns *namespace) deployments() typedappsv1.DeploymentInterface {
	return ns.in.kube.AppsV1().Deployments(ns.name)
}

// TestAnOverlayNamesTheMirrorInOnePlace checks that one line of an overlay sets the image
// for both the program and the policy, so that the policy accepts this image and no
// other. Existing Deployments follow. The writes of the old leader are refused until a
// new leader has the Lease; TestTwoInstallationsInOneNamespace also allows the earlier image.
func TestAnOverlayNamesTheMirrorInOnePlace(t *testing.T) {
	t.Parallel()
	c := newOwnCluster(t, testcluster.ControlPlaneOnly)
	const mirror = "registry.example.com/mirror/nginx:1.29"
	ns := c.inDefault()
	k := ns.primary()

	install := func(text string) *account { return c.applyOverlay(t, writeOverlay(t, deployFolder, text+withAnImage)) }

	install("").runsOnly(t, "nginx:latest", mirror)
	old := c.startInstalled(t, shippedName)
	k.createOwner(t, newFoo("old", 1))
	ns.awaitImage(t, "old", "nginx:latest")

	install(setsImage(mirror)).runsOnly(t, mirror, "nginx:latest")
	k.createOwner(t, newFoo("new", 1))
	k.awaitNotReady(t, "new", samplev1alpha1.ReasonDeploymentFailed,
		"The API server refused: ", "only with the image "+mirror)
	old.stop(t)

	c.startInstalled(t, shippedName)
	ns.awaitImage(t, "new", mirror)
	ns.awaitImage(t, "old", mirror)
}

// runsOnly waits until the policy accepts a Foo's Deployment with an image and refuses
// one with another image.
func (a *account) runsOnly(t *testing.T, image, other string) {
	t.Helper()
	a.await(t, "the image is accepted", footest.WithImage(image), testcluster.Succeeded)
	a.await(t, "another image is refused", footest.WithImage(other), testcluster.IsDeniedByPolicy)
}

// setsImage is what an overlay says to run an image, and allowsEarlier to allow the one of
// before, too.
func setsImage(image string) string {
	return fmt.Sprintf("commonAnnotations: {%s: '%s'}\n", imageAnnotation, image)
}

func allowsEarlier(image string) string {
	return fmt.Sprintf(`patches:
- target: {kind: ServiceAccount, name: %s}
  patch: '{apiVersion: v1, kind: ServiceAccount, metadata: {name: any, annotations: {%s: %q}}}'
`, shippedName, earlierAnnotation, image)
}

// earlierAnnotation names another image that the policy allows.
const earlierAnnotation = "samplecontroller.k8s.io/earlier-image"

var errOtherImage = errors.New("it has another image")

func (ns *namespace) awaitImage(t *testing.T, name, image string) {
	t.Helper()
	await(t, "the image is "+image, ns.deployments(), name, func(deployment *appsv1.Deployment) error {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if container.Name == "nginx" && container.Image == image {
				return nil
			}
		}
		return errOtherImage
	})
}

// installation is one of several in the namespace of the shipped one.
type installation struct {
	*testCluster

	// prefix begins its names, and folder is its overlay.
	prefix, folder string
	foos           *namespace
}

// newInstallation copies the manifests, as docs/operations.md says, and names a namespace to
// watch in the copy.
func (c *testCluster) newInstallation(t *testing.T, prefix string) *installation {
	t.Helper()
	watched := prefix + "foos"
	c.kubectl(t, "create", "namespace", watched)
	root := t.TempDir()
	for _, folder := range []string{"deploy", "crd"} {
		footest.Must(t, os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join(moduleRoot, "artifacts", folder))))
	}
	folder := filepath.Join(root, "deploy", "namespaced")
	watches, err := os.ReadFile(filepath.Join(folder, "watched.yaml"))
	footest.Must(t, err)
	another := strings.Replace(string(watches), "namespace: "+watchedNamespace, "namespace: "+watched, 1)
	writeFile(t, folder, "watched.yaml", another)
	i := &installation{testCluster: c, prefix: prefix, folder: folder, foos: &namespace{watched, c}}
	i.apply(t, "")
	return i
}

// apply applies the overlay with more settings.
func (i *installation) apply(t *testing.T, more string) {
	t.Helper()
	i.applyOverlay(t, writeOverlay(t, i.folder, "namePrefix: "+i.prefix+"\n"+withAnImage+more))
}

func (i *installation) start(t *testing.T) *process {
	t.Helper()
	return i.startInstalled(t, i.prefix+shippedName)
}

// TestTwoInstallationsInOneNamespace stops one of two, drains a node of both, and upgrades one
// to another image. The other one works all the time, no write is refused, and the
// drain ends.
func TestTwoInstallationsInOneNamespace(t *testing.T) {
	t.Parallel()
	c := newOwnCluster(t, "-nodes=2")
	a, b := c.newInstallation(t, "a-"), c.newInstallation(t, "b-")
	c.awaitInstalled(t, "a-"+shippedName)
	c.awaitInstalled(t, "b-"+shippedName)
	nodes, err := c.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	footest.Must(t, err)
	node := nodes.Items[0].Name
	c.kubectl(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", timeout)
	onNode := "--field-selector=spec.nodeName=" + node
	if left := c.kubectl(t, "get", "pods", inShippedNamespace, onNode, "-o=name", "--ignore-not-found"); left != "" {
		t.Errorf("the drain has left %s", left)
	}
	c.kubectl(t, "uncordon", node)

	ofA := a.start(t)
	b.start(t)
	a.foos.createReadyFoo(t, newFoo("first", 1))
	b.foos.createReadyFoo(t, newFoo("first", 1))
	ofA.stop(t)
	b.foos.createReadyFoo(t, newFoo("while-the-other-is-stopped", 1))

	const mirror = "registry.example.com/mirror/nginx:1.29"
	ofA = a.start(t)
	a.apply(t, setsImage(mirror)+allowsEarlier("nginx:latest"))
	a.foos.createReadyFoo(t, newFoo("during-the-upgrade", 1))
	ofA.stop(t)
	a.start(t)
	a.foos.awaitImage(t, "first", mirror)
	for _, i := range []*installation{a, b} {
		i.foos.primary().awaitReady(t, "first")
		warnings := "--field-selector=involvedObject.kind=Foo,type=Warning"
		if refusals := i.foos.kubectl(t, "get", "events", warnings, "--ignore-not-found"); refusals != "" {
			t.Errorf("writes were refused:\n%s", refusals)
		}
	}
}

func TestAFoosDeploymentRunsItsPods(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	for sentence, check := range map[string]func(*testing.T, *namespace){
		"a Foo's Pods become ready, and go with it":                           checkPodsOfADeletedFoo,
		"a Deployment created by hand is adopted with its own selector":       checkAdoptionByHand,
		"without replicas there is one Pod, and an autoscaler's number stays": checkAutoscaled,
		"what the API server refuses is told apart by the text it answers":    checkRefusals,
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			check(t, ns)
		})
	}
}

// podsOf returns a Foo's Pods.
func (ns *namespace) podsOf(t *testing.T, foo string) []corev1.Pod {
	t.Helper()
	selected := metav1.ListOptions{LabelSelector: "app=nginx,controller=" + foo}
	pods, err := ns.in.kube.CoreV1().Pods(ns.name).List(t.Context(), selected)
	footest.Must(t, err)
	return pods.Items
}

func checkPodsOfADeletedFoo(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("with-pods", 2))
	ns.awaitReplicas(t, "with-pods", 2)
	pods := ns.podsOf(t, "with-pods")
	for i := range pods {
		node, containers := pods[i].Spec.NodeName, pods[i].Spec.Containers
		if node == "" || len(containers) != 1 || containers[0].Name != "nginx" || containers[0].Image != "nginx:latest" {
			t.Errorf("On the node %q there are the containers %v, want one nginx", node, containers)
		}
	}
	if len(pods) != 2 {
		t.Errorf("There are %d Pods, want 2", len(pods))
	}
	ns.kubectl(t, "delete", "foo", "with-pods", "--cascade=background")
	awaitGone(t, ns.deployments(), "with-pods")
	awaitThat(t, "its ReplicaSet and Pods are gone", func(context.Context) error {
		left := ns.kubectl(t, "get", "replicasets,pods", "--selector=controller=with-pods", "-o=name", "--ignore-not-found")
		if left != "" {
			return fmt.Errorf("there are %s", left)
		}
		return nil
	})
}

// checkAdoptionByHand uses kubectl create deployment, whose selector differs from the
// controller's, and the command that the Foo's message quotes.
func checkAdoptionByHand(t *testing.T, ns *namespace) {
	ns.kubectl(t, "create", "deployment", "byhand", "--image=nginx")
	foo := newFoo("hopeful", 2)
	footest.FooOwner.Rename(foo, "byhand")
	ns.primary().createOwner(t, foo)
	message := ns.primary().awaitNotReady(t, "hopeful", ns.primary().conflict(), "byhand", "'kubectl ")
	_, rest, _ := strings.Cut(message, "'kubectl ")
	command, _, _ := strings.Cut(rest, "'")
	ns.kubectl(t, strings.Fields(command)...)
	ns.primary().awaitReady(t, "hopeful")
	if app := get(t, ns.deployments(), "byhand").Spec.Template.Labels["app"]; app != "byhand" {
		t.Errorf("The Pods' label app is %q, which the selector does not match", app)
	}
}

func checkAutoscaled(t *testing.T, ns *namespace) {
	foo := ns.createReadyFoo(t, newFoo("elastic", 0))
	ns.awaitReplicas(t, "elastic", 1)
	for _, replicas := range []int32{3, 1, 2} {
		ns.kubectl(t, "scale", "deployment/elastic", fmt.Sprintf("--replicas=%d", replicas))
		ns.awaitReplicas(t, "elastic", replicas)
	}
	settled := ns.primary().awaitSettled(t, foo)
	ns.primary().awaitSyncs(t)
	if now := get(t, ns.deployments(), "elastic"); now.ResourceVersion != settled.GetResourceVersion() {
		t.Errorf("The Deployment was written to: %v", now)
	}
}

// checkRefusals checks with a real API server what the metric of refusals, and with it the
// page for a lost permission, rests on.
func checkRefusals(t *testing.T, _ *namespace) {
	ns := newNamespace(t)
	ns.setQuota(t, "count/deployments.apps", "0")
	controller, err := kubernetes.NewForConfig(cluster.account.config)
	footest.Must(t, err)
	deployments, secrets := controller.AppsV1().Deployments(ns.name), controller.CoreV1().Secrets(ns.name)
	create := metav1.CreateOptions{DryRun: dryRun}
	made := footest.UnstoredDeployment("foo")
	plain, empty := made.DeepCopy(), made.DeepCopy()
	plain.OwnerReferences = nil
	empty.Spec.Template.Spec.Containers = nil
	_, quota := deployments.Create(t.Context(), made, create)
	_, policy := deployments.Create(t.Context(), plain, create)
	_, mayNotCreate := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, create)
	_, mayNotPatch := secrets.Patch(t.Context(), "a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	_, invalid := ns.deployments().Create(t.Context(), empty, create)
	for err, want := range map[error]string{
		quota:        failure.Quota,
		policy:       failure.Policy,
		mayNotCreate: failure.Permission,
		mayNotPatch:  failure.Permission,
		invalid:      failure.Other,
	} {
		if got := failure.CauseOf(err); got != want {
			t.Errorf("Refused by %q, want %q: %v", got, want, err)
		}
	}
}

// setQuota limits a resource of the namespace, and waits until the quota is in force. The API
// server refuses by a cache of quotas, so the quota also forbids Leases: one is refused when the
// cache has it.
func (ns *namespace) setQuota(t *testing.T, resource, limit string) {
	t.Helper()
	ns.kubectl(t, "create", "quota", "limit", "--hard="+resource+"="+limit+",count/leases.coordination.k8s.io=0")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	awaitThat(t, "the quota is in force", func(ctx context.Context) error {
		_, err := cluster.kube.CoordinationV1().Leases(ns.name).Create(ctx, lease, metav1.CreateOptions{DryRun: dryRun})
		if err == nil {
			return errors.New("a Lease is accepted")
		} else if !strings.Contains(err.Error(), "exceeded quota") {
			return err
		}
		return nil
	})
}

// TestQuotasThatLimitPods checks the quotas that docs/operations.md recommends against a user
// who may write Foos. The second Foo says what it lacks. One of Pods that are missing becomes
// ready without a resync when the quota is gone.
func TestQuotasThatLimitPods(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		resource, limit, refusal string
	}{
		{"count/deployments.apps", "1", "The API server refused: "},
		{"pods", "2", "cannot create its Pods"},
		{"requests.cpu", "200m", "cannot create its Pods"},
	} {
		t.Run(row.resource, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			// A quota of CPU needs containers with a request.
			_, err := cluster.kube.CoreV1().LimitRanges(ns.name).Create(t.Context(), &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Name: "containers"},
				Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
					Type:           corev1.LimitTypeContainer,
					DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
				}}},
			}, metav1.CreateOptions{})
			footest.Must(t, err)
			ns.setQuota(t, row.resource, row.limit)
			ns.startController(t, "-resync=0")
			ns.createReadyFoo(t, newFoo("first", 2))
			ns.primary().createOwner(t, newFoo("second", 2))
			ns.primary().awaitNotReady(t, "second", samplev1alpha1.ReasonDeploymentFailed, row.refusal, "exceeded quota: limit")
			if first, second := len(ns.podsOf(t, "first")), len(ns.podsOf(t, "second")); first != 2 || second != 0 {
				t.Errorf("There are %d Pods of the first and %d of the second, want 2 and 0", first, second)
			}
			if row.resource != "count/deployments.apps" { // a refused write is repeated later and later
				ns.kubectl(t, "delete", "quota", "limit")
				ns.primary().awaitReady(t, "second")
			}
		})
	}
}

func TestPodsRunInARestrictedNamespace(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.in.kubectl(t, "label", "namespace", ns.name, "pod-security.kubernetes.io/enforce=restricted")
	ns.startController(t)
	ns.createReadyFoo(t, newFoo("restricted", 1))
	pods := ns.podsOf(t, "restricted")
	if len(pods) != 1 || len(pods[0].Spec.Containers[0].VolumeMounts) != 2 {
		t.Errorf("The Pods are %v, want one with two empty volumes and no token", pods)
	}
}

// TestThePlatformChoosesThePodsUser has a namespace that accepts only users of its own, as OpenShift's default rule does.
func TestThePlatformChoosesThePodsUser(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.in.kubectl(t, "apply", "--filename="+writeFile(t, t.TempDir(), "users.yaml", fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s-users, labels: {%[2]s: '%[3]s'}}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  validations: [{expression: '!has(object.spec.securityContext.runAsUser) || object.spec.securityContext.runAsUser >= 1000680000'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s-users, labels: {%[2]s: '%[3]s'}}
spec: {policyName: %[1]s-users, validationActions: [Deny]}
`, ns.name, runLabel, ns.in.run)))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: footest.Created("probe").Spec.Template.Spec}
	footest.Must(t, testcluster.AwaitAnswer(t.Context(), patience, "the user 101 is refused", func(ctx context.Context) error {
		_, err := ns.in.kube.CoreV1().Pods(ns.name).Create(ctx, pod, metav1.CreateOptions{DryRun: dryRun})
		return err
	}, apierrors.IsInvalid))
	ns.startController(t, "-omit-pod-user")
	ns.createReadyFoo(t, newFoo("any-user", 1))
	for _, pod := range ns.podsOf(t, "any-user") {
		if context := pod.Spec.SecurityContext; context.RunAsUser != nil || !*context.RunAsNonRoot {
			t.Errorf("The Pod's security context is %v, want one without user that excludes root", context)
		}
	}
}
