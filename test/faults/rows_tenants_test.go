// SPDX-License-Identifier: Apache-2.0
// Rows F6: one tenant against all.

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/faults/proxy"
)

const (
	// obsolete is how many Deployments are hung on each of two Foos.
	obsolete = 400
	// maxCallsAhead bounds the requests for a tenant before it is another's turn.
	maxCallsAhead = 100
	// askers is how many Foos ask for the name of one Deployment.
	askers = 500
	// handOvers is how often that Deployment gets another owner, and wokenBy how many of the
	// Foos that wait for it may be written because of one.
	handOvers = 5
	wokenBy   = 18
	// slowCall is how long calls for a tenant take, and maxWait how long another tenant's
	// Foo may wait beside them.
	slowCall = 10 * time.Second
	maxWait  = 3 * time.Second
)

// newNeighbour returns another tenant of the same controllers, in a namespace of its own.
func (tr *trial) newNeighbour(ctx context.Context) (*trial, error) {
	created, err := tr.cluster.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-neighbour-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &trial{subject: tr.subject, cluster: tr.cluster, ns: created.Name, timeout: tr.timeout, replicas: tr.replicas}, nil
}

// obsoleteInHundreds is F6: a tenant creates Deployments and names a Foo as their owner,
// which does not ask for them.
func obsoleteInHundreds(ctx context.Context, tr *trial, _ *controlPlane) error {
	tr.everywhere = true
	for _, foo := range []string{"big-1", "big-2"} {
		if err := errors.Join(tr.createFoo(ctx, foo, foo, 1), tr.hang(ctx, foo, obsolete)); err != nil {
			return err
		}
	}
	r, err := tr.start()
	if err != nil {
		return err
	}
	other, err := tr.newNeighbour(ctx)
	if err != nil {
		return err
	}
	isDelete := func(call proxy.Call) bool { return call.Method == http.MethodDelete && call.Resource == "deployments" }
	if err := tr.awaitCall(ctx, r, isDelete); err != nil {
		return err
	}
	waited, ahead, err := other.awaitServed(ctx, r, "a")
	if err != nil {
		return err
	}
	if ahead > maxCallsAhead {
		return fmt.Errorf("two Foos lose %d Deployments each, and one of another namespace waited for %d requests, %v", obsolete, ahead, waited)
	}
	return errors.Join(tr.stableAndQuiet(ctx), other.stableAndQuiet(ctx))
}

// hang creates Deployments without Pods that a Foo controls and does not ask for.
func (tr *trial) hang(ctx context.Context, foo string, count int) error {
	owner, err := tr.foosClient().Get(ctx, foo, metav1.GetOptions{})
	for i := 0; i < count && err == nil; i++ {
		_, err = tr.deployments().Create(ctx, newDeployment(fmt.Sprintf("%s-%d", foo, i), ownedBy(foo, string(owner.UID)),
			func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }), metav1.CreateOptions{})
	}
	return err
}

// awaitServed creates a Foo, and returns how long its Deployment took, and how many
// requests for other namespaces the controller made meanwhile.
func (tr *trial) awaitServed(ctx context.Context, r *replica, foo string) (waited time.Duration, ahead int, err error) {
	began := time.Now()
	isMine := func(call proxy.Call) bool {
		return isCreate(call) && call.Namespace == tr.ns && call.Began.After(began)
	}
	if err := errors.Join(tr.createFoo(ctx, foo, foo, 1), tr.awaitCall(ctx, r, isMine)); err != nil {
		return 0, 0, err
	}
	created := r.callThat(isMine).Began
	for _, call := range r.proxy.Calls() {
		if call.Began.After(began) && call.Began.Before(created) && call.Namespace != tr.ns && call.Namespace != "" {
			ahead++
		}
	}
	return created.Sub(began), ahead, nil
}

// callThat returns the first request for which is returns true.
func (r *replica) callThat(is func(proxy.Call) bool) proxy.Call {
	calls := r.proxy.Calls()
	return calls[slices.IndexFunc(calls, is)]
}

// slowTenant is F6: calls for one namespace hang, as with a webhook that times out. The
// controller knows which namespace that is once it has ended a sync of it.
func slowTenant(ctx context.Context, tr *trial, _ *controlPlane) error {
	tr.everywhere = true
	r, err := tr.start()
	if err != nil {
		return err
	}
	other, err := tr.newNeighbour(ctx)
	if err != nil {
		return err
	}
	end := r.proxy.Use(func(call *proxy.Call) proxy.Fault {
		if call.Namespace == tr.ns && call.IsWrite() && call.Resource == "deployments" {
			return proxy.Delay(slowCall)
		}
		return nil
	})
	for i := range 8 {
		if err := tr.createFoo(ctx, fmt.Sprintf("slow-%d", i), fmt.Sprintf("slow-%d", i), 1); err != nil {
			return err
		}
	}
	isStatus := func(call proxy.Call) bool { return call.Subresource == "status" && call.Succeeded() }
	if err := tr.awaitCall(ctx, r, isStatus); err != nil {
		return err
	}
	for i := range 3 {
		foo := fmt.Sprintf("quick-%d", i)
		waited, _, err := other.awaitServed(ctx, r, foo)
		if err == nil && waited > maxWait {
			err = fmt.Errorf("calls for a namespace take %v each, and a Foo of another one waited %v", slowCall, waited.Round(time.Millisecond))
		}
		if err := errors.Join(err, other.awaitEvent(ctx, r, foo)); err != nil {
			return err
		}
	}
	end()
	return errors.Join(tr.stableAndQuiet(ctx), other.stableAndQuiet(ctx))
}

// awaitEvent waits until a controller has written an Event of a Foo.
func (tr *trial) awaitEvent(ctx context.Context, r *replica, foo string) error {
	began := time.Now()
	err := tr.awaitCall(ctx, r, func(call proxy.Call) bool {
		return call.Resource == "events" && call.Namespace == tr.ns && call.Succeeded() && bytes.Contains(call.Answer, []byte(foo+"."))
	})
	if waited := time.Since(began); err == nil && waited > maxWait {
		err = fmt.Errorf("calls for a namespace take %v each, and an Event of another one waited %v", slowCall, waited.Round(time.Millisecond))
	}
	return err
}

// oneName is F6: many Foos ask for the name of one Deployment. What changes in it concerns
// its owner alone, and only one of the others could be the next.
func oneName(writeCounts) []trialCase {
	return []trialCase{{fmt.Sprintf("%d Foos", askers), func(ctx context.Context, tr *trial) error {
		r, err := tr.startExempt()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "first", "shared", 1), tr.settled(ctx)); err != nil {
			return err
		}
		for i := range askers {
			if err := tr.createFoo(ctx, fmt.Sprintf("asker-%d", i), "shared", 1); err != nil {
				return err
			}
		}
		if err := tr.stableAndQuiet(ctx); err != nil {
			return err
		}
		before := r.proxy.Writes()
		if err := errors.Join(tr.flap(ctx, r, "shared"), tr.stableAndQuiet(ctx)); err != nil {
			return err
		}
		if writes := r.proxy.Writes() - before; writes > statusChanges {
			return fmt.Errorf("%d Foos wait for a Deployment whose status changed %d times: that caused %d writes", askers, statusChanges, writes)
		}
		before = r.proxy.Writes()
		if err := errors.Join(tr.handOver(ctx, r, "shared"), tr.stableAndQuiet(ctx)); err != nil {
			return err
		}
		if writes := r.proxy.Writes() - before; writes > handOvers*wokenBy {
			return fmt.Errorf("%d Foos wait for a Deployment whose owner changed %d times: that caused %d writes", askers, handOvers, writes)
		}
		return nil
	}}}
}

// handOver gives a Deployment to other owners, one after the other.
func (tr *trial) handOver(ctx context.Context, r *replica, deployment string) error {
	return tr.changeEach(ctx, r, deployment, handOvers, func(i int) error {
		owner, err := tr.cluster.kube.CoreV1().ConfigMaps(tr.ns).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("owner-%d", i)},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return tr.patchDeployment(ctx, deployment, fmt.Sprintf(
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q,"controller":true}]}}`, owner.Name, owner.UID))
	})
}
