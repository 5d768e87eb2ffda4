// SPDX-License-Identifier: Apache-2.0

// Tests of install, upgrade, rollback and uninstall on a cluster, and of several
// installations.

package test

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/testcluster"
)

// TestReleaseLifecycle installs, upgrades, rolls back and uninstalls a release. Foos and
// their Deployments must not change.
func TestReleaseLifecycle(t *testing.T) {
	c := newCluster(t)
	const release, namespace, name = "blue", "team", "blue-sample-controller"
	must(t, c.install(release, namespace, ""))
	c.kubectl("wait", "--for=condition=Established", "crd/"+definition)
	foo, made := c.makeFoo(namespace, name)
	c.isRestrictedByPolicy(namespace, name, "nginx:latest")

	c.upgrade(release, namespace, loadChart(t), "{replicas: 3, workers: 8, networkPolicy: {enabled: false}}")
	if got := c.field("deployment/"+name, namespace, ".status.availableReplicas"); got != "3" {
		t.Errorf("After the upgrade, %s replicas are available", got)
	}
	if got := c.kubectl("get", "networkpolicy", "--namespace="+namespace, "--output=name"); strings.Contains(got, name) {
		t.Errorf("After the upgrade, %s still exists", got)
	}
	c.rollback(release, namespace, 1)
	if got := c.field("deployment/"+name, namespace, ".spec.replicas"); got != "2" {
		t.Errorf("After the rollback, replicas are %s", got)
	}
	c.field("networkpolicy/"+name, namespace, ".metadata.name")
	c.isRestrictedByPolicy(namespace, name, "nginx:latest")

	c.uninstall(release, namespace)
	for _, kind := range []string{"deployment", "serviceaccount", "role", "rolebinding", "service", "poddisruptionbudget", "networkpolicy",
		"clusterrole", "clusterrolebinding", "validatingadmissionpolicy", "validatingadmissionpolicybinding", "flowschema"} {
		if got := c.kubectl("get", kind, "--namespace="+namespace, "--selector=app.kubernetes.io/instance="+release, "--output=name"); got != "" {
			t.Errorf("After the uninstall, %s still exists", got)
		}
	}
	c.isUnchanged(foos, foo)
	c.isUnchanged(deployments, made)

	// The CRD is still installed. Another release takes it over or ignores it.
	if err := c.install("green", "elsewhere", ""); err == nil || !strings.Contains(err.Error(), definition) {
		t.Errorf("Another release takes over the CRD without --take-ownership: %v", err)
	}
	must(t, c.install("green", "elsewhere", "", func(install *action.Install) { install.TakeOwnership = true }))
	must(t, c.install("red", "elsewhere", "{crds: {install: false}, watchNamespace: default, nginxImage: mirror.example.com/nginx:1}"))
	c.isRestrictedByPolicy("elsewhere", "green-sample-controller", "nginx:latest")
	c.isRestrictedByPolicy("elsewhere", "red-sample-controller", "mirror.example.com/nginx:1")
	c.isUnchanged(foos, foo)

	// The API server must accept the objects that result from unusual values.
	must(t, c.install(strings.Repeat("very-", 10)+"big", "elsewhere", `{crds: {install: false}, replicas: 1, workers: 26, logVerbosity: 2,
		image: {digest: "sha256:`+strings.Repeat("0", 64)+`"}, imagePullSecrets: [{name: key}], resources: null,
		nodeSelector: {kubernetes.io/hostname: node-1}, tolerations: [{operator: Exists}], priorityClassName: system-cluster-critical,
		affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchFields: [
			{key: metadata.name, operator: In, values: [node-1]}]}}]}}, podAnnotations: {a: "1"}, podLabels: {b: "2"},
		podSecurityContext: {runAsUser: null, runAsGroup: null}, extraVolumes: [{name: tls, emptyDir: {}}],
		extraVolumeMounts: [{name: tls, mountPath: /tls}], serviceAccount: {name: special, annotations: {c: "3"}},
		networkPolicy: {ingressFrom: [{namespaceSelector: {}}], egress: [{ports: [{port: 16443}]}]},
		monitoring: {dashboard: true}}`))
	c.isRestrictedByPolicy("elsewhere", "special", "nginx:latest")
}

// TestUpgradeReplacesCRDAndPolicy upgrades from an older chart, and rolls back.
func TestUpgradeReplacesCRDAndPolicy(t *testing.T) {
	c := newCluster(t)
	const release, namespace = program, program
	must(t, c.install(release, namespace, ""))
	older := loadChart(t)
	replaceIn(t, older, "files/crds/", "description: Number of Pods that are available", "description: An older description")
	replaceIn(t, older, "files/admission-policy", "<= 10", "<= 5")
	description := func() string {
		return c.field("crd/"+definition, "", ".spec.versions[0].additionalPrinterColumns[2].description")
	}
	limited := func() bool {
		return strings.Contains(c.field("validatingadmissionpolicy/"+program, "", ".spec.validations[*].expression"), "<= 5")
	}
	c.upgrade(release, namespace, older, "")
	if got := description(); got != "An older description" || !limited() {
		t.Fatalf("The older chart was not installed: %s", got)
	}
	c.upgrade(release, namespace, loadChart(t), "")
	if got := description(); got != "Number of Pods that are available" || limited() {
		t.Errorf("After the upgrade, the CRD's description is %q, and the policy is the older one: %t", got, limited())
	}
	c.rollback(release, namespace, 2)
	if got := description(); got != "An older description" || !limited() {
		t.Errorf("After the rollback, the CRD's description is %q, and the policy is the newer one: %t", got, !limited())
	}
	// A chart without the CRD leaves the CRD in the cluster unchanged.
	c.upgrade(release, namespace, loadChart(t), "crds: {install: false}")
	if got := description(); got != "An older description" {
		t.Errorf("After an upgrade without the CRD, its description is %q", got)
	}
}

// TestReleaseTakesOverFromKustomize follows the README. The Foos' Deployments must stay.
func TestReleaseTakesOverFromKustomize(t *testing.T) {
	c := newCluster(t)
	c.kubectl("apply", "--kustomize="+overlay(t, "resources: [BASE/deploy]"))
	c.kubectl("wait", "--for=condition=Established", "crd/"+definition)
	foo, made := c.makeFoo(program, program)
	c.kubectl("delete", "deployment", "--namespace="+program, program)
	must(t, c.install(program, program, "", func(install *action.Install) { install.TakeOwnership, install.ForceConflicts = true, true }))
	c.isUnchanged(foos, foo)
	c.isUnchanged(deployments, made)
	c.isRestrictedByPolicy(program, program, "nginx:latest")
	c.uninstall(program, program)
	c.isUnchanged(foos, foo)
	c.isUnchanged(deployments, made)
}

// replaceIn replaces text in a file of the chart.
func replaceIn(t *testing.T, chart *chartv2.Chart, name, from, to string) {
	t.Helper()
	for _, file := range chart.Files {
		if strings.HasPrefix(file.Name, name) && strings.Contains(string(file.Data), from) {
			file.Data = []byte(strings.ReplaceAll(string(file.Data), from, to))
			return
		}
	}
	t.Fatalf("No file %s of the chart has %q", name, from)
}

// foosDeployment returns a Deployment as the controller makes it.
func foosDeployment(name string, foo types.UID, image string) *appsv1.Deployment {
	return plan.Foos(image).Children[0].Desired(&samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: foo},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name},
	}, nil).(*appsv1.Deployment)
}

// makeFoo creates a Foo, and with the controller's account its Deployment.
func (c *cluster) makeFoo(namespace, account string) (foo, deployment *unstructured.Unstructured) {
	c.Helper()
	c.await("a Foo can be made", func() error {
		var err error
		foo, err = c.objects.Resource(foos).Namespace("default").Create(c.Context(), &unstructured.Unstructured{Object: mapping{
			"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": mapping{"name": "kept"},
			"spec": mapping{"deploymentName": "kept", "replicas": int64(1)},
		}}, metav1.CreateOptions{})
		return err
	}, testcluster.Succeeded)
	client := c.as(namespace, account)
	c.await("the account may make its Deployment", func() error {
		_, err := client.Create(c.Context(), foosDeployment("kept", foo.GetUID(), "nginx:latest"), metav1.CreateOptions{})
		return err
	}, testcluster.Succeeded)
	c.kubectl("wait", "--for=condition=Available", "deployment/kept")
	return foo, c.get(deployments, "default", "kept")
}

// isRestrictedByPolicy checks with a token of the service account that the policy allows
// it only to write a Foo's Deployment with that image.
func (c *cluster) isRestrictedByPolicy(namespace, account, image string) {
	c.Helper()
	client := c.as(namespace, account)
	create := func(image string) func() error {
		return func() error {
			_, err := client.Create(c.Context(), foosDeployment("stolen", "00000000-0000-0000-0000-000000000000", image),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
	}
	c.await(account+" may write a Foo's Deployment", create(image), testcluster.Succeeded)
	c.await(account+" may write no other", create("miner:latest"), testcluster.IsDeniedByPolicy)
}

// isUnchanged fails the test if an object was recreated or its spec changed.
func (c *cluster) isUnchanged(resource schema.GroupVersionResource, before *unstructured.Unstructured) {
	c.Helper()
	after := c.get(resource, before.GetNamespace(), before.GetName())
	if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() || after.GetDeletionTimestamp() != nil {
		c.Errorf("%s %s was %s, generation %d, and is %s, generation %d", before.GetKind(), before.GetName(),
			before.GetUID(), before.GetGeneration(), after.GetUID(), after.GetGeneration())
	}
}

// installation is what must not concern another installation in the same namespace.
type installation struct {
	lease string
	// leases are the names of the Leases that its permissions cover.
	leases []any
	pods   mapping
	// selectors are those of its Pods, by kind.
	selectors map[string]mapping
}

// TestInstallationsInOneNamespaceAreSeparate checks that none competes for the Lease of
// another, and none's objects select the Pods of another: two PodDisruptionBudgets that
// select a Pod prevent its eviction.
func TestInstallationsInOneNamespaceAreSeparate(t *testing.T) {
	const resources = "resources: [BASE/deploy/namespaced]\n"
	for way, pair := range map[string][2]map[string]mapping{
		"a prefix or none":     {kustomize(t, overlay(t, resources)), kustomize(t, overlay(t, resources+"namePrefix: a-"))},
		"two prefixes":         {kustomize(t, overlay(t, resources+"namePrefix: a-")), kustomize(t, overlay(t, resources+"namePrefix: b-"))},
		"a prefix or suffix":   {kustomize(t, overlay(t, resources+"namePrefix: a-")), kustomize(t, overlay(t, resources+"nameSuffix: -b"))},
		"two releases by Helm": {template(t, "a", program, "watchNamespace: red"), template(t, "b", program, "watchNamespace: blue")},
	} {
		t.Run(way, func(t *testing.T) {
			one, two := readInstallation(t, pair[0]), readInstallation(t, pair[1])
			if one.lease == two.lease {
				t.Errorf("Both elect a leader by the Lease %s", one.lease)
			}
			for _, i := range []installation{one, two} {
				if len(i.leases) != 1 || i.leases[0] != i.lease {
					t.Errorf("The permissions cover the Leases %v, not %s", i.leases, i.lease)
				}
				for kind, selector := range i.selectors {
					if first, second := selects(selector, one.pods), selects(selector, two.pods); first == second {
						t.Errorf("The %s with the selector %v selects the Pods of both, or of none", kind, selector)
					}
				}
			}
		})
	}
}

func readInstallation(t *testing.T, objects map[string]mapping) installation {
	t.Helper()
	args := container(t, objects)["args"].([]any)
	made := installation{lease: args[slices.Index(args, any("-leader-elect-resource-name"))+1].(string), selectors: map[string]mapping{}}
	for id, object := range objects {
		kind, _, _ := strings.Cut(id, " ")
		switch kind {
		case "Deployment":
			made.pods = at(object, "spec", "template", "metadata", "labels").(mapping)
			spread := at(object, "spec", "template", "spec", "topologySpreadConstraints").([]any)[0]
			// Of other installations' Pods, matchLabelKeys distinguishes them.
			if selector := at(spread, "labelSelector", "matchLabels").(mapping); !selects(selector, made.pods) {
				t.Errorf("The Pods are not spread by their labels, but by %v", selector)
			}
			fallthrough
		case "PodDisruptionBudget":
			made.selectors[kind] = at(object, "spec", "selector", "matchLabels").(mapping)
		case "NetworkPolicy":
			made.selectors[kind] = at(object, "spec", "podSelector", "matchLabels").(mapping)
		case "Service":
			made.selectors[kind] = at(object, "spec", "selector").(mapping)
		case "Role":
			for _, rule := range at(object, "rules").([]any) {
				names, _ := at(rule, "resourceNames").([]any)
				made.leases = append(made.leases, names...)
			}
		}
	}
	if len(made.selectors) != 4 {
		t.Fatalf("There are not 4 selectors of Pods: %v", made.selectors)
	}
	return made
}

// selects reports whether a selector by labels matches.
func selects(selector, labels mapping) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}
