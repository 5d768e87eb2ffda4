// SPDX-License-Identifier: Apache-2.0

// The steps in which the test of permissions takes the controller through all that it
// does.

package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/test/footest"
)

// trial is a controller with some permissions, and its namespaces.
type trial struct {
	account *account
	// foos is the namespace that it watches. Its account is in another one.
	foos *namespace
	// readerToken may read the metrics.
	readerToken string
	flags       []string
	// controllers are the running controllers, in the order of their start.
	controllers []*process
}

// newTrial creates an account with the permissions of the objects. It starts no
// controller.
func newTrial(t *testing.T, objects []*unstructured.Unstructured) *trial {
	t.Helper()
	home := newNamespace(t)
	tr := &trial{foos: newNamespace(t)}
	var copies []*unstructured.Unstructured
	for _, object := range rolesAlone(objects) {
		copies = append(copies, object.DeepCopy())
	}
	err := move(copies, map[string]string{shippedNamespace: home.name, metav1.NamespaceDefault: tr.foos.name}, cluster.run)
	if err == nil {
		tr.account, err = installAccount(t.Context(), cluster.kubeconfig, home.name, copies, t.TempDir())
	}
	if err != nil {
		t.Fatal(err)
	}
	// Create the reader first, because the controller caches refusals.
	tr.readerToken = home.newReaderOf(t, home.name)
	tr.flags = []string{
		"-v=2", "-kubeconfig=" + tr.account.kubeconfig, "-namespace=" + tr.foos.name,
		"-leader-elect", "-leader-elect-lease-duration=30s", "-leader-elect-renew-deadline=25s",
		"-metrics-bind-address=127.0.0.1:0",
	}
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

// The names of the steps.
const (
	stepStart         = "becomes leader and starts its workers"
	stepLeaderEvent   = "records an event for the new leader"
	stepRenewal       = "renews the Lease"
	stepCreate        = "creates a child of each kind"
	stepStatus        = "writes the status"
	stepRepair        = "repairs drift of each kind"
	stepAdoption      = "adopts an object of each kind"
	stepDelete        = "deletes children that the Foo no longer asks for"
	stepRepeatedEvent = "counts a repeated event"
	stepMetrics       = "serves the metrics to an authorized reader"
	stepHandOver      = "hands the Lease over to a standby at once"
)

// steps are the steps in their order. Each builds on those before it. Outcomes are polled
// many times a second.
var steps = []step{
	{stepStart, func(t *testing.T, tr *trial) {
		t.Helper()
		tr.start(t, "-leader-elect-retry-period=1s")
	}, func(_ *testing.T, tr *trial) error { return hasLogged(tr.controllers[0], "Starting workers") }},
	{stepLeaderEvent, nothing, leaderEventWritten},
	{stepRenewal, nothing, leaseRenewed},
	{stepCreate, func(t *testing.T, tr *trial) {
		t.Helper()
		for _, owner := range footest.Owners {
			foo := owner.Asking("web", "web", 1)
			foo.SetNamespace(tr.foos.name)
			kindIn{tr.foos, owner.Kinds[0]}.createOwner(t, foo)
		}
	}, hasChildren},
	{stepStatus, nothing, func(t *testing.T, tr *trial) error {
		t.Helper()
		return forEachKind(func(kind *footest.Kind) error {
			ready := footest.ConditionOf(kindIn{tr.foos, kind}.owner(t, "web"))
			if ready == nil || ready.Status != metav1.ConditionTrue {
				return fmt.Errorf("the condition of %s web is %v", kind.Owner(), ready)
			}
			return nil
		})
	}},
	{stepRepair, func(t *testing.T, tr *trial) {
		t.Helper()
		_ = forEachKind(func(kind *footest.Kind) error {
			children := kindIn{tr.foos, kind}
			foo := children.owner(t, "web")
			children.update(t, kind.Name(foo), func(child footest.Object) { kind.Drift(child, foo) })
			return nil
		})
	}, hasChildren},
	{stepAdoption, func(t *testing.T, tr *trial) {
		t.Helper()
		_ = forEachKind(func(kind *footest.Kind) error {
			children := kindIn{tr.foos, kind}
			children.createForeign(t, children.fostering())
			children.createOwner(t, children.fostering())
			children.handOver(t, children.fostering())
			return nil
		})
	}, hasAdopted},
	{stepDelete, func(t *testing.T, tr *trial) {
		t.Helper()
		for _, owner := range footest.Owners {
			kindIn{tr.foos, owner.Kinds[0]}.rename(t, "web", "shop")
		}
	}, hasNoOtherChildren},
	{stepRepeatedEvent, conflictTwice, eventCounted},
	{stepMetrics, nothing, metricsShown},
	{stepHandOver, func(t *testing.T, tr *trial) {
		t.Helper()
		// Without a watch it would read the Lease again after 20 s.
		tr.start(t, "-leader-elect-retry-period=20s")
		tr.controllers[1].awaitLog(t, "The Lease has a new holder", 1) // it has read the Lease once
		tr.controllers[0].stop(t)
	}, func(_ *testing.T, tr *trial) error { return hasLogged(tr.controllers[1], "Starting workers") }},
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
	events, err := cluster.kube.CoreV1().Events(tr.account.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Lease"})
	if err == nil && len(events.Items) == 0 {
		err = errNone
	}
	return err
}

func leaseRenewed(t *testing.T, tr *trial) error {
	t.Helper()
	lease := get(t, cluster.kube.CoordinationV1().Leases(tr.account.namespace), "sample-controller")
	if !lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time) {
		return errors.New("the Lease was not renewed after it was acquired")
	}
	return nil
}

// hasChildren is an outcome: the owner web of each kind has a child of each of its kinds,
// as it asks.
func hasChildren(t *testing.T, tr *trial) error {
	t.Helper()
	return forEachKind(func(kind *footest.Kind) error {
		children := kindIn{tr.foos, kind}
		return children.hasChild(t, children.owner(t, "web"))
	})
}

// fostering returns the owner that adopts an object of the kind.
func (k kindIn) fostering() footest.Object { return k.asking("fosters") }

// hasAdopted is an outcome: an object of each kind has been adopted.
func hasAdopted(t *testing.T, tr *trial) error {
	t.Helper()
	return forEachKind(func(kind *footest.Kind) error {
		children := kindIn{tr.foos, kind}
		return children.hasChild(t, children.owner(t, children.fostering().GetName()))
	})
}

// hasNoOtherChildren is an outcome: the owner web of each kind has only the children that
// it asks for.
func hasNoOtherChildren(t *testing.T, tr *trial) error {
	t.Helper()
	return forEachKind(func(kind *footest.Kind) error {
		children := kindIn{tr.foos, kind}
		foo := children.owner(t, "web")
		list, err := children.client().List(t.Context(), metav1.ListOptions{})
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
	tr.foos.createForeignChild(t, "taken")
	tr.foos.createFoo(t, newFoo("restless", withChild("taken")))
	tr.foos.awaitConflict(t, "restless")
	tr.foos.rename(t, "restless", "free")
	tr.foos.awaitReady(t, "restless")
	tr.foos.rename(t, "restless", "taken")
	tr.foos.awaitConflict(t, "restless")
}

func eventCounted(t *testing.T, tr *trial) error {
	t.Helper()
	events, err := tr.foos.events().List(t.Context(), eventsOf("restless"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if event := &events.Items[i]; event.Reason == reasonConflict && event.Count == 2 {
			return nil
		}
	}
	return fmt.Errorf("the event was not counted twice: %v", events.Items)
}

// metricsAddress matches the address of the metrics in a controller's log.
var metricsAddress = regexp.MustCompile(`"Serving metrics" address="([^"]+)"`)

func metricsShown(t *testing.T, tr *trial) error {
	t.Helper()
	found := metricsAddress.FindStringSubmatch(tr.controllers[0].log.String())
	if found == nil {
		return errors.New("the log has no address of the metrics")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+found[1]+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+tr.readerToken)
	// The certificate is self-signed.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}
