// SPDX-License-Identifier: Apache-2.0

// The steps in which the test of permissions takes the controller through all that it
// does.

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// trial is a controller with some permissions, and its namespaces.
type trial struct {
	account *account
	// home is the account's namespace, and foos the one that the controller watches.
	home, foos *namespace
	// readerToken may read the metrics.
	readerToken string
	flags       []string
	// controllers are the running controllers, in the order of their start.
	controllers []*process
}

// newTrial creates an account with the permissions of the objects. It starts no
// controller.
func newTrial(t *testing.T, objects manifests) *trial {
	t.Helper()
	tr := &trial{home: newNamespace(t), foos: newNamespace(t)}
	tr.account = tr.home.newAccountWith(t, objects, tr.foos.name)
	// Create the reader first, because the controller caches refusals.
	tr.readerToken = tr.home.newReader(t, "reader", metricsReader+tr.home.name, "/metrics")
	tr.flags = append(tr.account.flags(),
		"-v=2", "-namespace="+tr.foos.name, "-leader-elect-lease-duration=30s", "-leader-elect-renew-deadline=25s",
		"-metrics-bind-address="+anyPort)
	return tr
}

// start starts one more controller.
func (tr *trial) start(t *testing.T, flags ...string) {
	t.Helper()
	tr.controllers = append(tr.controllers, startController(t, append(flags, tr.flags...)...))
}

// step is an action of the controller.
type step struct {
	name string
	// begin makes the change to which the controller reacts. It waits only for actions
	// that need the permissions of earlier steps.
	begin func(t *testing.T, tr *trial)
	// outcome returns an error until the controller has carried out the step.
	outcome func(t *testing.T, tr *trial) error
}

// steps are the steps in their order. Each builds on those before it. Outcomes are polled
// many times a second.
var steps = []step{
	{"becomes leader and starts its workers", func(t *testing.T, tr *trial) {
		t.Helper()
		tr.start(t, "-leader-elect-retry-period=1s")
	}, func(_ *testing.T, tr *trial) error { return hasLogged(tr.controllers[0], working) }},
	{"records an event for the new leader", nothing, leaderEventWritten},
	{"renews the Lease", nothing, leaseRenewed},
	{"creates a child of each kind", func(t *testing.T, tr *trial) {
		t.Helper()
		for _, owner := range footest.Owners {
			kindIn{tr.foos, owner.Kinds[0]}.createOwner(t, owner.Asking("web", "web", 1))
		}
	}, hasChildrenOf(web)},
	{"writes the status", nothing, func(t *testing.T, tr *trial) error {
		t.Helper()
		return forEachKind(func(kind *footest.Kind) error {
			foo := get(t, kindIn{tr.foos, kind}.owners(), "web")
			if ready := footest.ConditionOf(foo); ready == nil || ready.Status != metav1.ConditionTrue {
				return fmt.Errorf("the condition of %s web is %v", kind.Owner(), ready)
			}
			return nil
		})
	}},
	{"repairs drift of each kind", func(t *testing.T, tr *trial) {
		t.Helper()
		_ = forEachKind(func(kind *footest.Kind) error {
			children := kindIn{tr.foos, kind}
			foo := get(t, children.owners(), "web")
			children.change(t, kind.Name(foo), func(child footest.Object) { kind.Drift(child, foo) })
			return nil
		})
	}, hasChildrenOf(web)},
	{"adopts an object of each kind", func(t *testing.T, tr *trial) {
		t.Helper()
		_ = forEachKind(func(kind *footest.Kind) error {
			children := kindIn{tr.foos, kind}
			children.createForeign(t, children.asking("fosters"))
			children.createOwner(t, children.asking("fosters"))
			children.handOver(t, children.asking("fosters"))
			return nil
		})
	}, hasChildrenOf(func(k kindIn) string { return k.asking("fosters").GetName() })},
	{"deletes children that the Foo no longer asks for", func(t *testing.T, tr *trial) {
		t.Helper()
		for _, owner := range footest.Owners {
			kindIn{tr.foos, owner.Kinds[0]}.rename(t, "web", "shop")
		}
	}, hasNoOtherChildren},
	{"counts a repeated event", conflictTwice, eventCounted},
	{"serves the metrics to an authorized reader", nothing, metricsShown},
	{"hands the Lease over to a standby at once", func(t *testing.T, tr *trial) {
		t.Helper()
		// Without a watch it would read the Lease again after 20 s.
		tr.start(t, "-leader-elect-retry-period=20s")
		tr.controllers[1].awaitLog(t, newHolder, 1) // it has read the Lease once
		tr.controllers[0].stop(t)
	}, func(_ *testing.T, tr *trial) error { return hasLogged(tr.controllers[1], working) }},
}

func nothing(*testing.T, *trial) {}

func hasLogged(p *process, text string) error {
	if p.log.Count(text) == 0 {
		return fmt.Errorf("the log has no %q", text)
	}
	return nil
}

func leaderEventWritten(t *testing.T, tr *trial) error {
	t.Helper()
	if len(tr.home.eventsOf(t, "Lease", tr.account.name)) == 0 {
		return errors.New("there is no event about the Lease")
	}
	return nil
}

func leaseRenewed(t *testing.T, tr *trial) error {
	t.Helper()
	lease := get(t, cluster.kube.CoordinationV1().Leases(tr.account.namespace), tr.account.name)
	if !lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time) {
		return errors.New("the Lease was not renewed after it was acquired")
	}
	return nil
}

// web is the name of the owner of each kind that asks for a child of each of its kinds.
func web(kindIn) string { return "web" }

// hasChildrenOf returns an outcome: for each kind, the owner of a name has a child as it asks.
func hasChildrenOf(name func(kindIn) string) func(*testing.T, *trial) error {
	return func(t *testing.T, tr *trial) error {
		t.Helper()
		return forEachKind(func(kind *footest.Kind) error {
			children := kindIn{tr.foos, kind}
			return children.hasChild(t.Context(), get(t, children.owners(), name(children)))
		})
	}
}

// hasNoOtherChildren is an outcome: the owner web of each kind has only the children that
// it asks for.
func hasNoOtherChildren(t *testing.T, tr *trial) error {
	t.Helper()
	return forEachKind(func(kind *footest.Kind) error {
		children := kindIn{tr.foos, kind}
		foo := get(t, children.owners(), "web")
		list, err := children.children().client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, child := range list.Items {
			if metav1.IsControlledBy(&child, foo) && (child.GetName() != kind.Name(foo) || !kind.Wanted(foo)) {
				return fmt.Errorf("it has the %s %s", kind, child.GetName())
			}
		}
		return nil
	})
}

// conflictTwice makes a Foo ask for a taken name, for a free one, and for the taken one
// again, so that the third event repeats the first.
func conflictTwice(t *testing.T, tr *trial) {
	t.Helper()
	k := tr.foos.primary()
	restless := newFoo("restless", 1)
	k.Owner().Rename(restless, "taken")
	k.createForeign(t, restless)
	k.createOwner(t, restless)
	tr.foos.awaitNotReady(t, "restless", reasonConflict)
	k.rename(t, "restless", "free")
	k.awaitReady(t, "restless")
	k.rename(t, "restless", "taken")
	tr.foos.awaitNotReady(t, "restless", reasonConflict)
}

func eventCounted(t *testing.T, tr *trial) error {
	t.Helper()
	events := tr.foos.eventsOf(t, "Foo", "restless")
	for i := range events {
		if events[i].Reason == reasonConflict && events[i].Count == 2 {
			return nil
		}
	}
	return fmt.Errorf("the event was not counted twice: %v", events)
}

func metricsShown(t *testing.T, tr *trial) error {
	t.Helper()
	p := tr.controllers[0]
	if p.log.Count(`"Serving metrics"`) == 0 {
		return errors.New("the log has no address of the metrics")
	}
	if got := ask(t, p.metricsURL(t), tr.readerToken); got.code != http.StatusOK {
		return fmt.Errorf("the response is %d: %s", got.code, got.body)
	}
	return nil
}
