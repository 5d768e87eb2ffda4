// SPDX-License-Identifier: Apache-2.0

// How long a tenant waits for its Foos while another tenant, in another namespace, does the
// worst that its permissions allow.

package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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

	// sharedName is the Deployment that many Foos want, and hangTime how long calls hang.
	sharedName = "shared"
	hangTime   = 3 * time.Second
	// attackInterval is the pause between two changes of an attack that goes on.
	attackInterval = 5 * time.Millisecond
)

// attacker is the namespace of the tenant that attacks.
var attacker = namespaceOf(0)

// Attack is what a tenant does to a controller.
type Attack struct {
	Name string
	// prepare makes what is there when the program starts, of a size that the tests reduce.
	prepare func(ctx context.Context, s *session, size int) error
	size    int
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
	{Name: "4,000 new Foos", size: 4000, prepare: foosOfAttacker(nameOf)},
	{Name: "2 Foos with 400 obsolete Deployments each", size: 400, prepare: obsoleteChildren},
	{
		Name: "500 Foos that want one name, whose owner's status changes all the time", size: 500,
		prepare: foosOfAttacker(func(int) string { return sharedName }),
		change: func(ctx context.Context, s *session, turn int) error {
			return s.patchDeployment(ctx, sharedName, fmt.Sprintf(`{"status":{"replicas":%d}}`, turn), "status")
		},
	},
	{Name: Hanging, size: 20, prepare: hangingWebhook},
	{Name: "500 Foos whose Deployments a policy denies", size: 500, prepare: denyingPolicy},
	{
		Name: "50 Deployments that are changed back as soon as they are repaired", size: 50,
		prepare: foosOfAttacker(nameOf),
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
			if err := attack.prepare(ctx, s, attack.size); err != nil {
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
func foosOfAttacker(deployment func(number int) string) func(context.Context, *session, int) error {
	return func(ctx context.Context, s *session, size int) error {
		return each(ctx, 0, size, func(ctx context.Context, number int) error {
			foo := objects.Foo(attacker, nameOf(number))
			foo.Spec.DeploymentName = deployment(number)
			_, err := s.clients.SamplecontrollerV1alpha1().Foos(attacker).Create(ctx, foo, metav1.CreateOptions{})
			return err
		})
	}
}

// obsoleteChildren creates two Foos that control many Deployments which they do not want.
func obsoleteChildren(ctx context.Context, s *session, size int) error {
	for number := range 2 {
		foo, err := s.createFoo(ctx, attacker, number)
		if err != nil {
			return err
		}
		err = each(ctx, 0, size, func(ctx context.Context, child int) error {
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

// inAttackersNamespace and createsDeployment select what the webhook and the policy apply to.
var (
	inAttackersNamespace = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": attacker}}
	createsDeployment    = admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
	}
)

// hangingWebhook creates Foos, and a webhook for their Deployments that accepts connections and
// does not respond.
func hangingWebhook(ctx context.Context, s *session, size int) error {
	silent, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { silent.Close() })
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hangs"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "hangs.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://" + silent.Addr().String())},
			Rules:                   []admissionregistrationv1.RuleWithOperations{createsDeployment},
			NamespaceSelector:       inAttackersNamespace,
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(hangTime.Seconds())),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	_, err = s.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, webhook, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return errors.Join(s.awaitRefusal(ctx), foosOfAttacker(nameOf)(ctx, s, size))
}

// denyingPolicy creates Foos, and a policy that denies their Deployments.
func denyingPolicy(ctx context.Context, s *session, size int) error {
	meta := metav1.ObjectMeta{Name: "denied"}
	matched := &admissionregistrationv1.MatchResources{
		NamespaceSelector: inAttackersNamespace,
		ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: createsDeployment}},
	}
	policies := s.kube.AdmissionregistrationV1()
	_, errPolicy := policies.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: matched,
			Validations:      []admissionregistrationv1.Validation{{Expression: "false", Message: "denied by the benchmark"}},
		},
	}, metav1.CreateOptions{})
	_, errBinding := policies.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err := errors.Join(errPolicy, errBinding); err != nil {
		return err
	}
	return errors.Join(s.awaitRefusal(ctx), foosOfAttacker(nameOf)(ctx, s, size))
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
