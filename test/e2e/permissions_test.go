// SPDX-License-Identifier: Apache-2.0

// Each shipped permission is needed, no other is, and the manual says what each allows: the test takes
// the controller through all that it does, with each kind of children.

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/footest"
)

// TestEachPermissionIsNeeded installs the shipped manifests in its own cluster, because they have fixed names. KWOK
// simulates its nodes and the controller's Pods; the program runs as a process with the token and the arguments of the
// Pods. The permissions are sufficient for all steps, and the controller makes use of each.
func TestEachPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	c := newOwnCluster(t, "-nodes=2")
	if c.emulates != run.cluster.emulates {
		t.Errorf("This cluster emulates %q, but the cluster under test emulates %q", c.emulates, run.cluster.emulates)
	}
	// Not parallel, because the variants have the same names.
	if t.Run("for all namespaces", func(t *testing.T) { c.checkInstallation(t, deployFolder, true) }) {
		t.Run("for one namespace", func(t *testing.T) { c.checkInstallation(t, namespacedFolder, false) })
	}
}

// checkProgram takes the program through all that it does.
func (c *testCluster) checkProgram(t *testing.T, folder string) {
	t.Helper()
	tr := inNamespaceOf(t, c, metav1.NamespaceDefault)
	footest.Must(t, tr.startRecording())
	tr.takeAllSteps()
	tr.await("the controller has used each of its permissions", func(context.Context) error { return tr.usesAll(grantsOf(t, objectsOf(t, folder))) })
	for _, call := range tr.made(func(call *proxy.Call) bool { return call.Code == http.StatusForbidden }) {
		t.Errorf("The API server refused %s", call)
	}
	tr.endRecording()
	// The garbage collector discovers new kinds every 30 s, and may not know Foos yet.
	tr.kubectl("delete", "foo,deployment", "--all")
}

// usesAll returns an error that names a permission which no controller has used.
func (tr *trial) usesAll(granted []grant) error {
	calls := tr.made()
	for _, g := range granted {
		isUse := func(call *proxy.Call) bool {
			return call.Verb == g.Verb && call.APIGroup == g.Group && call.Resource == g.Resource && call.Subresource == g.Subresource &&
				(g.Name == "" || call.Name == g.Name) && (g.Namespace == "" || call.Namespace == g.Namespace)
		}
		// An admission plugin asks for that of finalizers: a child delays the deletion of its owner.
		if g.Subresource != "finalizers" && !slices.ContainsFunc(calls, isUse) {
			return fmt.Errorf("%s: it does not %s in %q", g.role, g, g.Group)
		}
	}
	return nil
}

// takeAllSteps takes the installed controller through all that it does, and through the shipped example.
func (tr *trial) takeAllSteps() {
	tr.t.Helper()
	lease := []string{"-v=2", "-leader-elect-lease-duration=30s", "-leader-elect-renew-deadline=25s"}
	// Create the reader first, because the controller caches refusals.
	token := tr.newReader(fmt.Sprintf("reader-%d", time.Now().UnixNano()), metricsReader, "/metrics")
	leader := tr.startInstalled(shipped, append(lease, "-leader-elect-retry-period=1s")...)
	tr.must(tr.account.awaitFoosAsOwners(tr.ctx, tr.ns))
	tr.awaitLog(leader, working, 1)
	tr.kubectl("create", "-f="+moduleRoot+"/artifacts/examples/example-foo.yaml")
	tr.awaitPods("example-foo", 1)
	for _, kind := range kindsOfChildren() {
		tr.walk(kind)
	}
	if got := ask(tr.t, tr.metricsURL(leader), token); got.code != http.StatusOK {
		tr.t.Errorf("An authorized reader of the metrics gets %d: %s", got.code, got.body)
	}
	// Without a watch a standby would read the Lease again after 20 s.
	standby := tr.startInstalled(shipped, append(lease, "-leader-elect-retry-period=20s")...)
	tr.awaitLog(standby, newHolder, 1) // it has read the Lease once
	tr.stop(leader)
	tr.awaitLog(standby, working, 1)
	tr.stop(standby)
}

// walk takes the controller through all that it does with a kind of children. The oracle judges each step.
func (tr *trial) walk(kind *footest.Kind) {
	tr.t.Helper()
	owner, name := kind.Owner(), strings.ToLower(kind.Kind)
	foo := tr.createOwner(kind, name)
	tr.stableAndQuiet()
	child := tr.get(kind, kind.Name(foo))

	drifted := tr.change(kind, child.GetName(), func(child footest.Object) {
		kind.Drift(child, foo)
		kind.Edit(child, "kept")
	})
	if kind.Differs(drifted, foo) == "" {
		tr.failf("the API server did not store the drift, so this test shows nothing")
	}
	tr.stableAndQuiet()
	tr.mustKeep(kind, drifted, foo)

	tr.must(tr.api().Delete(tr.ctx, kind, child.GetName()))
	earlier := kind.New(foo)
	earlier.SetName(child.GetName() + "-earlier")
	_, err := tr.api().Create(tr.ctx, kind, earlier)
	tr.must(err)
	tr.stableAndQuiet() // there is one again, and no other

	taken := kind.ForeignNamed(kind.Name(owner.Asking(name+"-taken", name+"-taken", 1)))
	taken.SetNamespace(tr.ns)
	foreign, err := tr.api().Create(tr.ctx, kind, taken)
	tr.must(err)
	second := tr.createOwner(kind, name+"-taken")
	tr.stableAndQuiet() // it is reported
	edited := tr.change(kind, foreign.GetName(), func(child footest.Object) { kind.Edit(child, "touched") })
	tr.letAct()
	tr.mustKeep(kind, edited, nil)
	tr.change(kind, foreign.GetName(), footest.WithAdoptBy(second.GetName()))
	tr.stableAndQuiet()
	if tr.get(kind, foreign.GetName()).GetUID() != foreign.GetUID() {
		tr.failf("the object that was handed over was replaced, not adopted")
	}

	if kind.IsOptional() {
		tr.change(owner.Kind, name, kind.Unset)
		tr.stableAndQuiet()
		tr.change(owner.Kind, name, kind.Ask)
		tr.stableAndQuiet()
	}
	if kind == owner.Kinds[0] { // the third Event repeats the first
		for _, child := range []string{name + "-taken", name + "-free", name + "-taken"} {
			tr.change(owner.Kind, name, func(foo footest.Object) { owner.Rename(foo, child) })
			tr.stableAndQuiet()
		}
	}
	for _, foo := range []string{name, name + "-taken"} {
		tr.must(tr.api().Delete(tr.ctx, owner.Kind, foo))
	}
	tr.stableAndQuiet() // the children have gone with them
}

// createOwner creates an owner that asks for a child of a kind.
func (tr *trial) createOwner(kind *footest.Kind, name string) footest.Object {
	tr.t.Helper()
	foo := kind.Owner().New(name, name, 1)
	foo.SetNamespace(tr.ns)
	kind.Ask(foo)
	created, err := tr.api().Create(tr.ctx, kind.Owner().Kind, foo)
	tr.must(err)
	return created
}

func (tr *trial) get(kind *footest.Kind, name string) footest.Object {
	tr.t.Helper()
	found, err := tr.api().Get(tr.ctx, kind, name)
	tr.must(err)
	return found
}

// change changes an object as a user would. Others may write at any time.
func (tr *trial) change(kind *footest.Kind, name string, change func(footest.Object)) (changed footest.Object) {
	tr.t.Helper()
	often := wait.Backoff{Duration: 10 * time.Millisecond, Steps: 100}
	tr.must(retry.RetryOnConflict(often, func() (err error) {
		object := tr.get(kind, name)
		change(object)
		changed, err = tr.api().Update(tr.ctx, kind, object)
		return err
	}))
	return changed
}

// mustKeep fails unless a child has what others have written. The child may have an owner.
func (tr *trial) mustKeep(kind *footest.Kind, written, foo footest.Object) {
	tr.t.Helper()
	now := tr.get(kind, written.GetName())
	if foo == nil && now.GetOwnerReferences() != nil {
		tr.failf("the owners of somebody's %s are %v", kind, now.GetOwnerReferences())
	}
	theirs := func(child footest.Object) footest.Object {
		part := kind.OthersPart(child, foo)
		part.SetAnnotations(map[string]string{"note": part.GetAnnotations()["note"]}) // the cluster's own controllers set others
		return part
	}
	footest.ExpectEqual(tr.t, "what others have written", theirs(written), theirs(now))
}

// TestAControllerWaitsForItsPermissions starts one that lacks the permission to list, or to watch,
// everything. It says of each resource once what is missing, and starts when it has the permission.
func TestAControllerWaitsForItsPermissions(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t)
			role := tr.useOwnRole()
			less := tr.updateRole(without(role, func(_ rbacv1.PolicyRule, granted string) bool { return granted == verb }))
			r, resources := tr.start(), strings.Split(allResources(), ",")
			for _, resource := range resources {
				tr.awaitLog(r, fmt.Sprintf("the permission to %s %s in the namespace %s is missing", verb, resource, tr.ns), 1)
			}
			less.Rules = role.Rules
			tr.updateRole(less)
			tr.awaitLog(r, working, 1)
			if r.log.Count("is missing") > len(resources) || r.log.Count("Failed to watch") > 0 {
				t.Errorf("The log has a missing permission more than once, or something of informers:\n%s", &r.log)
			}
		})
	}
}

// TestTheManualSaysWhatAThiefCanDo compares the rows of the manual with the permissions of
// the controller's account and with the flow schema, verb by verb.
func TestTheManualSaysWhatAThiefCanDo(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join(moduleRoot, "docs", "operations.md"))
	if err != nil {
		t.Skipf("the documents are missing: %v", err)
	}
	_, table, _ := strings.Cut(string(manual), "| verbs | on | so they can |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	said := sets.New[string]()
	for row := range strings.SplitSeq(strings.ReplaceAll(table, "`", ""), "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("docs/operations.md has the row %q", row)
		}
		for verb := range strings.SplitSeq(cells[0], ", ") {
			said.Insert(verb + " " + cells[1])
		}
	}
	granted := sets.New(rightsIn(t, deployFolder)...).Insert(rightsIn(t, namespacedFolder)...)
	for _, right := range sets.List(granted.Difference(said)) {
		t.Errorf("docs/operations.md does not say what a thief can do by the permission to %s", right)
	}
	for _, right := range sets.List(said.Difference(granted)) {
		t.Errorf("docs/operations.md says what a thief can do by the permission to %s, which the manifests do not grant", right)
	}
}

// rightsIn returns what the roles of a directory grant and its flow schemas prefer, in the
// words of the manual.
func rightsIn(t *testing.T, folder string) []string {
	t.Helper()
	objects := objectsOf(t, folder)
	var rights []string
	for _, grant := range grantsOf(t, objects) {
		right := grant.String()
		if grant.Name != "" {
			right += " named " + grant.Name
		}
		rights = append(rights, right)
	}
	for _, object := range objects {
		if object.GetKind() != "FlowSchema" {
			continue
		}
		var schema flowcontrolv1.FlowSchema
		footest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &schema))
		for _, rule := range schema.Spec.Rules {
			for _, requests := range rule.ResourceRules {
				for _, verb := range requests.Verbs {
					rights = append(rights, verb+" "+strings.Join(requests.Resources, " and ")+" by the FlowSchema")
				}
			}
		}
	}
	return rights
}

// grant is the permission for one verb on one resource, or on a path of a URL, which is then the
// resource.
type grant struct {
	authorizationv1.ResourceAttributes

	// role is the kind and name of the role that grants it.
	role string
}

func (g grant) String() string { return g.Verb + " " + g.path() }

// path returns the resource with the subresource, if any.
func (g grant) path() string {
	return strings.TrimSuffix(g.Resource+"/"+g.Subresource, "/")
}

// grantsOf returns the permissions of the bound roles among objects.
func grantsOf(t *testing.T, objects manifests) (grants []grant) {
	t.Helper()
	bound := map[string]bool{}
	for _, object := range objects {
		if strings.HasSuffix(object.GetKind(), "Binding") {
			kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
			name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			bound[kind+" "+name] = true
		}
	}
	for _, object := range objects {
		if bound[object.GetKind()+" "+object.GetName()] {
			more, err := grantsOfRole(object)
			footest.Must(t, err)
			grants = append(grants, more...)
		}
	}
	if len(grants) == 0 {
		t.Fatal("the manifests grant no permissions")
	}
	return grants
}

// grantsOfRole returns the permissions of a Role or ClusterRole, whose rules have the
// same type.
func grantsOfRole(object *unstructured.Unstructured) ([]grant, error) {
	role := object.GetKind() + " " + object.GetName()
	var content rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &content); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	var grants []grant
	add := func(attributes authorizationv1.ResourceAttributes) { grants = append(grants, grant{attributes, role}) }
	for _, rule := range content.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				add(authorizationv1.ResourceAttributes{Resource: url, Verb: verb})
			}
			for _, group := range rule.APIGroups {
				for _, path := range rule.Resources {
					resource, subresource, _ := strings.Cut(path, "/")
					for _, name := range names {
						add(authorizationv1.ResourceAttributes{
							Namespace: object.GetNamespace(), Verb: verb, Group: group, Resource: resource, Subresource: subresource, Name: name,
						})
					}
				}
			}
		}
	}
	return grants, nil
}
