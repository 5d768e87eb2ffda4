// SPDX-License-Identifier: Apache-2.0

// How long a tenant waits for its Foos while another tenant, in another namespace, does the
// worst that its permissions allow.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/objects"
	"example.com/sample-controller/test/testcluster"
)

const (
	// probeInterval is the time between the creations of two Foos in quietNamespace, whether or
	// not the earlier ones have converged.
	probeInterval = 100 * time.Millisecond
	// probeLimit is how long a Foo may wait after the last was created.
	probeLimit = time.Minute
)

// attacker is the namespace of the tenant that attacks.
var attacker = namespaceOf(0)

// attack is what a tenant does to a controller. With its size, each is what a quota of thousands of
// objects lets a tenant do.
type attack struct {
	name string
	// prepare makes what is there when the program starts.
	prepare func(ctx context.Context, s *session) error
}

// nothing is the attack that is none, to compare the others with.
const nothing = "nothing"

var attacks = []attack{
	{nothing, func(context.Context, *session) error { return nil }},
	{"4,000 new Foos", func(ctx context.Context, s *session) error {
		_, err := s.waitingFoos(ctx, 4000, attacker)
		return err
	}},
	{"20 Foos, each of whose calls hangs for 3 s in a webhook", hangingWebhook},
}

// waits measures how long a number of Foos of a tenant wait for a program while another tenant
// attacks.
func (b bench) waits(ctx context.Context, p program, a attack, probes int) (waited figures, err error) {
	err = b.in(ctx, false, func(s *session) error {
		if err := a.prepare(ctx, s); err != nil {
			return fmt.Errorf("preparing an attack: %w", err)
		}
		if _, err := s.createFoo(ctx, quietNamespace, probes); err != nil { // so that there is some work
			return err
		}
		made, err := s.record(p.namespace)
		if err != nil {
			return err
		}
		running, err := s.start(p)
		if err != nil {
			return err
		}
		if err := awaitWrite(ctx, running, made); err != nil {
			return err
		}
		waited, err = s.probe(ctx, running, made, probes)
		return err
	})
	return waited, err
}

// awaitWrite waits until the program has made its first write.
func awaitWrite(ctx context.Context, running *process, made *requests) error {
	return testcluster.Await(ctx, time.Minute, "the program writes", func(context.Context) error {
		written, err := made.next()
		if err == nil && len(written) == 0 {
			err = errors.New("no write yet")
		}
		return errors.Join(err, running.Err())
	})
}

// probe creates Foos at a steady rate, and returns how long they wait for the program.
func (s *session) probe(ctx context.Context, running *process, made *requests, probes int) (figures, error) {
	created, waiting := map[string]time.Time{}, []*samplev1alpha1.Foo{}
	rate := time.NewTicker(probeInterval)
	defer rate.Stop()
	for number := range probes {
		select {
		case <-rate.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		began := time.Now()
		foo, err := s.createFoo(ctx, quietNamespace, number)
		if err != nil {
			return nil, err
		}
		waiting, created[keyOf(foo)] = append(waiting, foo), began
	}
	limited, cancel := context.WithTimeoutCause(ctx, probeLimit, errLate)
	defer cancel()
	converged, err := made.converged(limited, running, waiting)
	if err != nil && !errors.Is(err, errLate) {
		return nil, err
	}
	found, waited := figures{waitLate: 0}, []time.Duration{}
	for key, at := range created {
		until, served := converged[key]
		if !served {
			until = time.Now()
			found[waitLate]++
		}
		waited = append(waited, until.Sub(at))
	}
	slices.Sort(waited)
	found[waitHalf], found[waitMost] = waited[len(waited)/2].Seconds()*1000, waited[(len(waited)*99-1)/100].Seconds()*1000
	return found, nil
}

// hangingWebhook creates Foos, and a webhook for their Deployments that accepts connections and
// does not respond.
func hangingWebhook(ctx context.Context, s *session) error {
	silent, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { silent.Close() })
	manifest, err := os.ReadFile(s.manifest("hanging-webhook.yaml"))
	if err != nil {
		return err
	}
	adapted := bytes.ReplaceAll(manifest, []byte("ADDRESS"), []byte(silent.Addr().String()))
	if err := os.WriteFile(s.path("webhook.yaml"), adapted, 0o600); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "create", "-f", s.path("webhook.yaml")); err != nil {
		return err
	}
	if err := s.awaitRefusal(ctx); err != nil {
		return err
	}
	_, err = s.waitingFoos(ctx, 20, attacker)
	return err
}

// awaitRefusal waits until the API server refuses a Deployment of the attacker.
func (s *session) awaitRefusal(ctx context.Context) error {
	return testcluster.AwaitAnswer(ctx, time.Minute, "the API server refuses a Deployment", func(ctx context.Context) error {
		_, err := s.kube.AppsV1().Deployments(attacker).
			Create(ctx, objects.Foreign(attacker, "probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, func(err error) bool { return err != nil && !apierrors.IsAlreadyExists(err) })
}
