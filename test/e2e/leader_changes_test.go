// SPDX-License-Identifier: Apache-2.0

// Leader election: a leader that was frozen, and many changes of leaders.

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/footest"
)

// frozenFor is longer than the duration of a Lease.
const frozenFor = 20 * time.Second

// frozenFoos is the number of Foos. They keep the leader busy until it is frozen.
const frozenFoos = 30

// TestALeaderThatWasFrozenDoesNoHarm stops a leader for a while. It continues with its
// caches and its queue, although another controller has taken over meanwhile.
func TestALeaderThatWasFrozenDoesNoHarm(t *testing.T) {
	t.Parallel()
	r := newReplicas(t)
	first := r.start(t)
	first.awaitLog(t, working, 1)
	second := r.start(t)
	for i := range frozenFoos {
		r.ns.createFoo(t, newFoo(frozenName(i), withReplicas(1)))
	}
	holder := r.holder(t)
	first.signal(t, syscall.SIGSTOP)
	thaw := time.NewTimer(frozenFor)
	for i := range frozenFoos {
		mergePatch(t, r.ns.foos(), frozenName(i), `{"spec":{"replicas":2}}`)
	}
	r.awaitOtherHolder(t, holder)
	second.awaitLog(t, working, 1)
	<-thaw.C
	first.signal(t, syscall.SIGCONT)

	if code := first.exitCode(t); code != exitFailure {
		t.Errorf("The exit code of the frozen leader is %d, want %d", code, exitFailure)
	}
	for i := range frozenFoos {
		r.ns.awaitReplicas(t, frozenName(i), 2)
		r.ns.awaitReady(t, frozenName(i))
	}
	r.ns.awaitSettled(t)
	r.expectOneChildEach(t, frozenFoos)
	r.expectQuiet(t, second)
}

func frozenName(i int) string { return fmt.Sprintf("frozen-%d", i) }

func (r *replicas) expectOneChildEach(t *testing.T, foos int) {
	t.Helper()
	list, err := r.ns.children().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]int{}
	for i := range list.Items {
		if ref := metav1.GetControllerOf(&list.Items[i]); ref != nil {
			owners[string(ref.UID)]++
		}
	}
	if len(list.Items) != foos || len(owners) != foos {
		t.Errorf("There are %d children of %d Foos, want %d of each", len(list.Items), len(owners), foos)
	}
}

// expectQuiet checks that the leader stays the same and writes nothing during some
// resyncs.
func (r *replicas) expectQuiet(t *testing.T, leader *process) {
	t.Helper()
	before, holder := r.ns.versions(t), r.holder(t)
	const resynced = "Forcing resync"
	leader.awaitLog(t, resynced, leader.log.Count(resynced)+resyncs)
	if after := r.ns.versions(t); !maps.Equal(before, after) {
		t.Errorf("There were writes although nothing changed: %v, before %v", after, before)
	}
	if now := r.holder(t); now != holder {
		t.Errorf("The holder of the Lease changed from %q to %q", holder, now)
	}
}

// changes is the number of changes of leaders before watches and goroutines are counted.
const changes = 100

// TestAHundredLeadersLeaveNothingBehind checks a standby for leaks. A leader's process
// ends when it loses the Lease, so only a standby that never leads experiences many
// changes. This one may not write the Lease.
func TestAHundredLeadersLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	r := newReplicas(t)
	leader := r.start(t)
	leader.awaitLog(t, working, 1)
	witness := r.startWith(t, r.readOnlyAccount(t).kubeconfig)
	witness.awaitLog(t, newHolder, 1)

	for range changes {
		next := r.start(t)
		leader.stop(t)
		next.awaitLog(t, working, 1)
		leader = next
	}
	r.ns.createFoo(t, newFoo("after", withReplicas(1)))
	r.ns.awaitReady(t, "after")
	witness.awaitLog(t, newHolder, changes/2) // it may miss some of them

	fresh := r.startWith(t, r.readOnlyAccount(t).kubeconfig)
	fresh.awaitLog(t, newHolder, 1)
	old, young := witness.goroutines(t), fresh.goroutines(t)
	const aWatch = "watch.(*StreamWatcher).receive"
	want := 1
	for _, owner := range footest.Owners {
		want += 1 + len(owner.Kinds)
	}
	if watches := strings.Count(old, aWatch); watches != want {
		t.Errorf("After %d leaders a standby has %d watches, want %d: of owners, their children and the Lease", changes, watches, want)
	}
	const each = "\ngoroutine "
	// An idle connection has one or two goroutines fewer.
	if was, is := strings.Count(young, each), strings.Count(old, each); is > was+2 {
		t.Errorf("After %d leaders a standby has %d goroutines, a new one has %d:\n%s", changes, is, was, old)
	}
}

// readOnlyAccount creates an account that may read but not write the Lease.
func (r *replicas) readOnlyAccount(t *testing.T) *account {
	t.Helper()
	a := newNamespace(t).newAccount(t)
	meta := metav1.ObjectMeta{Name: "lease-reader-of-" + a.namespace, Namespace: r.account.namespace}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{shippedName}, Verbs: []string{"get", "watch"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: shippedName}},
	}
	if _, err := cluster.kube.RbacV1().Roles(meta.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.kube.RbacV1().RoleBindings(meta.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return a
}

// goroutines ends the program with SIGQUIT and returns the stacks that it prints.
func (p *process) goroutines(t *testing.T) string {
	t.Helper()
	p.signal(t, syscall.SIGQUIT)
	p.exitCode(t)
	_, stacks, found := strings.Cut(p.log.String(), "SIGQUIT: quit")
	if !found {
		t.Fatalf("%v printed no stacks", p.Args())
	}
	return stacks
}
