// SPDX-License-Identifier: Apache-2.0

// How long a tenant waits for its Foos while another tenant, in another namespace, does the
// worst that its permissions allow.

package measure

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/objects"
	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/testcluster"
)

const (
	// probeInterval is the time between the creations of two Foos in quietNamespace, whether or
	// not the earlier ones have converged.
	probeInterval = 100 * time.Millisecond
	// probeLimit is how long a Foo may wait after the last was created.
	probeLimit = time.Minute

	// sharedName is the Deployment that many Foos want.
	sharedName = "shared"
	// attackInterval is the pause between two changes of an attack that goes on.
	attackInterval = 5 * time.Millisecond
)

// attacker is the namespace of the tenant that attacks.
var attacker = namespaceOf(0)

// Attack is what a tenant does to a controller.
type Attack struct {
	Name string
	// prepare makes what is there when the program starts; nil means nothing.
	prepare func(ctx context.Context, s *session) error
	// change is repeated while the other tenant waits; nil means that nothing is.
	change func(ctx context.Context, s *session, turn int) error
}

// Idle is the Attack that is none, to compare the others with.
const Idle = "nothing"

// Hanging is the Attack whose calls hang.
const Hanging = "20 Foos, each of whose calls hangs for 3 s in a webhook"

// Attacks are the attacks of the benchmark. With its size, each is what a quota of thousands of
// objects lets a tenant do.
var Attacks = []Attack{
	{Name: Idle},
	{Name: "4,000 new Foos", prepare: foosOfAttacker(4000, nameOf)},
	{Name: "2 Foos with 400 obsolete Deployments each", prepare: obsoleteChildren},
	{
		Name:    "500 Foos that want one name, whose owner's status changes all the time",
		prepare: foosOfAttacker(500, func(int) string { return sharedName }),
		change: func(ctx context.Context, s *session, turn int) error {
			return s.patchDeployment(ctx, sharedName, fmt.Sprintf(`{"status":{"replicas":%d}}`, turn), "status")
		},
	},
	{Name: Hanging, prepare: hangingWebhook},
	{Name: "500 Foos whose Deployments a policy denies", prepare: func(ctx context.Context, s *session) error {
		return s.refused(ctx, s.manifest("denying-policy.yaml"), 500)
	}},
	{
		Name:    "50 Deployments that are changed back as soon as they are repaired",
		prepare: foosOfAttacker(50, nameOf),
		change: func(ctx context.Context, s *session, turn int) error {
			return s.patchDeployment(ctx, nameOf(turn%50), `{"spec":{"replicas":7}}`)
		},
	},
}

// Waits measures how long a number of Foos of a tenant wait for a program while another tenant
// attacks.
func (b *Bench) Waits(ctx context.Context, p Program, attack Attack, probes int) (waited results.Wait, err error) {
	err = b.in(ctx, false, func(s *session) error {
		if attack.prepare != nil {
			if err := attack.prepare(ctx, s); err != nil {
				return fmt.Errorf("preparing an attack: %w", err)
			}
		}
		if _, err := s.createFoo(ctx, quietNamespace, probes); err != nil { // so that there is some work
			return err
		}
		made, err := s.record(ctx)
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
		attacking, stop := context.WithCancel(ctx)
		defer stop()
		if turn := 0; attack.change != nil {
			go wait.UntilWithContext(attacking, func(ctx context.Context) {
				_ = attack.change(ctx, s, turn) // fails as long as the object does not exist
				turn++
			}, attackInterval)
		}
		waited, err = s.probe(ctx, running, made, probes)
		return err
	})
	return waited, err
}

// awaitWrite waits until the program has made its first write.
func awaitWrite(ctx context.Context, running *process, made *requests) error {
	return testcluster.Await(ctx, time.Minute, "the program writes", func(context.Context) error {
		writes, err := made.next()
		if err == nil && len(writes) == 0 {
			err = errors.New("no write yet")
		}
		return errors.Join(err, running.Err())
	})
}

// probe creates Foos at a steady rate, and returns how long they wait for the program.
func (s *session) probe(ctx context.Context, running *process, made *requests, probes int) (found results.Wait, err error) {
	created, foos := map[string]time.Time{}, []*samplev1alpha1.Foo{}
	rate := time.NewTicker(probeInterval)
	defer rate.Stop()
	for number := range probes {
		select {
		case <-rate.C:
		case <-ctx.Done():
			return found, context.Cause(ctx)
		}
		began := time.Now()
		foo, err := s.createFoo(ctx, quietNamespace, number)
		if err != nil {
			return found, err
		}
		foos, created[keyOf(foo)] = append(foos, foo), began
	}
	limited, cancel := context.WithTimeoutCause(ctx, probeLimit, errLate)
	defer cancel()
	converged, err := made.converged(limited, running, foos)
	if err != nil && !errors.Is(err, errLate) {
		return found, err
	}
	var waited []time.Duration
	for key, at := range created {
		until, served := converged[key]
		if !served {
			until = time.Now()
			found.Late++
		}
		waited = append(waited, until.Sub(at))
	}
	slices.Sort(waited)
	found.Foos, found.P50, found.P99 = len(waited), waited[len(waited)/2].Seconds(), waited[(len(waited)*99-1)/100].Seconds()
	return found, nil
}

// foosOfAttacker returns a function that creates Foos with the names of their Deployments.
func foosOfAttacker(n int, deployment func(number int) string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		return each(ctx, 0, n, func(ctx context.Context, number int) error {
			foo := objects.Foo(attacker, nameOf(number))
			foo.Spec.DeploymentName = deployment(number)
			_, err := s.clients.SamplecontrollerV1alpha1().Foos(attacker).Create(ctx, foo, metav1.CreateOptions{})
			return err
		})
	}
}

// obsoleteChildren creates two Foos that control many Deployments which they do not want.
func obsoleteChildren(ctx context.Context, s *session) error {
	for number := range 2 {
		foo, err := s.createFoo(ctx, attacker, number)
		if err != nil {
			return err
		}
		err = each(ctx, 0, 400, func(ctx context.Context, child int) error {
			deployment := objects.Deployment(foo)
			deployment.Name = fmt.Sprintf("%s-%d", foo.Name, child)
			_, err := s.kube.AppsV1().Deployments(attacker).Create(ctx, deployment, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
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
	return s.refused(ctx, s.path("webhook.yaml"), 20)
}

// refused creates what a manifest has, and Foos whose Deployments the API server then refuses.
func (s *session) refused(ctx context.Context, manifest string, foos int) error {
	if err := s.kubectl(ctx, "create", "-f", manifest); err != nil {
		return err
	}
	return errors.Join(s.awaitRefusal(ctx), foosOfAttacker(foos, nameOf)(ctx, s))
}

// awaitRefusal waits until the API server refuses a Deployment of the attacker.
func (s *session) awaitRefusal(ctx context.Context) error {
	return testcluster.AwaitAnswer(ctx, time.Minute, "the API server refuses a Deployment", func(ctx context.Context) error {
		_, err := s.kube.AppsV1().Deployments(attacker).
			Create(ctx, objects.Foreign(attacker, "probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, func(err error) bool { return err != nil && !apierrors.IsAlreadyExists(err) })
}

func (s *session) patchDeployment(ctx context.Context, name, patch string, subresources ...string) error {
	_, err := s.kube.AppsV1().Deployments(attacker).
		Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "attacker"}, subresources...)
	return err
}
