// SPDX-License-Identifier: Apache-2.0

// The contract: a Foo has one child from its creation to its deletion, over restarts and
// changes of the leader.

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

func TestAFooHasAChildAsLongAsItExists(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"a created Foo gets a child", checkCreated},
		{"a Foo deleted and created again gets a child of its own", checkRecreated},
		{"example-foo.yaml works as it is", checkExample},
	})
}

func checkCreated(t *testing.T, ns *namespace) {
	foo := ns.createFoo(t, newFoo("created", withReplicas(2)))
	awaitOne(t, "the child is created", ns.children(), "created", ns.isChildOf(t, foo))
	ns.awaitReplicas(t, "created", 2)
}

func checkRecreated(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("again"))
	first := ns.getChild(t, "again")
	if err := ns.foos().Delete(t.Context(), "again", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, ns.foos(), "again")
	second := ns.createFoo(t, newFoo("again"))

	awaitOne(t, "the second Foo has a child", ns.children(), "again", func(d *child) error {
		if d.GetUID() == first.GetUID() {
			return errors.New("it is the first Foo's")
		}
		return isControlled(d, second)
	})
	ns.awaitReady(t, "again")
}

func checkExample(t *testing.T, ns *namespace) {
	ns.applyExample(t, filepath.Join(moduleRoot, "artifacts/examples/example-foo.yaml"))
}

// applyExample creates the Foo "example-foo" from a file, without decoding it into our
// types, and waits until it is ready.
func (ns *namespace) applyExample(t *testing.T, path string) {
	t.Helper()
	example, err := readObject(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ns.rawFoos().Create(t.Context(), example, metav1.CreateOptions{}); err != nil {
		t.Fatalf("Creating %s: %v", path, err)
	}
	ns.awaitReplicas(t, "example-foo", 1)
}

// TestSettledFoosCostNoWrites checks some resyncs, and a restart.
func TestSettledFoosCostNoWrites(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	killed := ns.startController(t, "-resync=1s", "-v=4")
	for i := range 3 {
		ns.createReadyFoo(t, newFoo(fmt.Sprintf("settled-%d", i), withReplicas(1)))
	}
	ns.awaitSettled(t)
	before := ns.versions(t)
	killed.awaitResyncs(t, 3)
	expectVersions(t, before, ns.versions(t))
	killed.kill(t)

	second := ns.startController(t)
	ns.awaitSyncs(t)
	// A stop waits for the syncs under way, so that no write follows.
	second.stop(t)
	expectVersions(t, before, ns.versions(t))
}

// versions returns the resourceVersion of each Foo and child by
// "kind/namespace/name".
func (ns *namespace) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	foos, err := ns.foos().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range foos.Items {
		versions["Foo/"+ns.name+"/"+foos.Items[i].Name] = foos.Items[i].ResourceVersion
	}
	children, err := ns.children().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range children.Items {
		versions[footest.Primary.Kind+"/"+ns.name+"/"+children.Items[i].GetName()] = children.Items[i].GetResourceVersion()
	}
	return versions
}

// expectVersions checks that the objects of before have the same versions after.
func expectVersions(t *testing.T, before, after map[string]string) {
	t.Helper()
	if len(before) == 0 {
		t.Error("There are no objects to compare")
	}
	for object, version := range maps.All(before) {
		if after[object] != version {
			t.Errorf("%s was written to: resourceVersion %s, before %s", object, after[object], version)
		}
	}
}

// Messages that the controller logs during leader election.
const (
	standingBy = "Standing by for the Lease"
	newHolder  = "The Lease has a new holder"
	working    = "Starting workers"
)

// replicas are controllers of the Foos of one namespace that compete for one Lease.
type replicas struct {
	ns      *namespace
	account *account
}

func newReplicas(t *testing.T) *replicas {
	t.Helper()
	ns := newNamespace(t)
	return &replicas{ns: ns, account: ns.newAccount(t)}
}

// start runs one more controller, and waits until its caches are filled.
func (r *replicas) start(t *testing.T, flags ...string) *process {
	t.Helper()
	return r.startWith(t, r.account.kubeconfig, flags...)
}

func (r *replicas) startWith(t *testing.T, kubeconfig string, flags ...string) *process {
	t.Helper()
	p := startController(t, append([]string{"-kubeconfig=" + kubeconfig, "-namespace=" + r.ns.name,
		"-leader-elect", "-leader-elect-resource-namespace=" + r.account.namespace, "-resync=1s", "-v=4"}, flags...)...)
	p.awaitLog(t, standingBy, 1)
	return p
}

// TestAStandbyTakesOver is not parallel, because on a busy machine it would measure more
// than the controllers' own time.
func TestAStandbyTakesOver(t *testing.T) {
	for name, row := range map[string]struct {
		end    syscall.Signal
		within time.Duration
		code   int
	}{
		"from a leader that is killed":  {syscall.SIGKILL, 17 * time.Second, -1},
		"from a leader that is stopped": {syscall.SIGTERM, 2 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplicas(t)
			leader := r.start(t)
			leader.awaitLog(t, working, 1)
			r.ns.createReadyFoo(t, newFoo("before", withReplicas(1)))
			standby := r.start(t)

			began := time.Now()
			leader.signal(t, row.end)
			standby.awaitLog(t, working, 1)
			if took := time.Since(began); took > row.within {
				t.Errorf("The takeover took %v, want at most %v", took, row.within)
			}
			r.ns.createReadyFoo(t, newFoo("after", withReplicas(1)))
			if code := leader.exitCode(t); code != row.code {
				t.Errorf("The leader's exit code is %d, want %d", code, row.code)
			}
		})
	}
}
