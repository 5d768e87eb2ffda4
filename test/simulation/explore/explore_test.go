// SPDX-License-Identifier: Apache-2.0

// Tests of the exploration itself, with controllers that each break one rule.

package explore

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// smallest is a world with one Foo.
var smallest = complete(footest.FooOwner, World{Name: "create", Acts: []string{"create a web"}, Users: 1})[0]

// doing is what a controller under test does for a Foo.
type doing func(ctx context.Context, parts Parts, foo *samplev1alpha1.Foo) error

// acting returns a controller that acts for each Foo whose event arrives.
func acting(do doing) New {
	return func(parts Parts) (Subject, error) {
		foos := parts.CustomInformers.Samplecontroller().V1alpha1().Foos()
		enqueue := func(object any) {
			if foo, ok := object.(*samplev1alpha1.Foo); ok {
				parts.Queue.Add(cache.MetaObjectToName(foo))
			}
		}
		_, err := foos.TypedInformer().AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{
			AddFunc: enqueue, UpdateFunc: func(_, foo any) { enqueue(foo) },
		}, cache.HandlerOptions{})
		return Subject{Controller: &struct{}{}, ProcessNextWorkItem: func(ctx context.Context) bool {
			key, _ := parts.Queue.Get()
			defer parts.Queue.Done(key)
			foo, err := foos.Lister().Foos(key.Namespace).Get(key.Name)
			if err == nil && do != nil && do(ctx, parts, foo.DeepCopy()) != nil {
				parts.Queue.Add(key)
			}
			return true
		}}, err
	}
}

func TestBrokenControllersAreDetected(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   doing
		rule string
	}{
		{"does nothing", nil, "at rest: Foo a has no " + footest.Primary.Kind + " web"},
		{"reports Ready too early", claimReady, "Foo a reports Ready for generation 1, which has not been ready yet"},
		{"writes the Foo", scaleItsFoo, "update Foo a changes fields of others"},
		{"deletes the Foo", deleteItsFoo, "delete Foo a is sent, although Foo a belongs to users"},
		{"writes for ever", rewrite, "the world comes to no rest: calls go on"},
		{"reads in a resync", read, "at rest: Foo a has no " + footest.Primary.Kind},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result, err := Run(smallest, acting(tt.do), Bounds{States: 20_000}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if result.Violation == nil || !strings.Contains(result.Violation.Rules[0], tt.rule) {
				t.Fatalf("got the violation %v, want %q", result.Violation, tt.rule)
			}
			steps := result.Violation.GoTest()
			steps = steps[strings.LastIndex(steps, `, "`)+3 : strings.LastIndex(steps, `"`)]
			if err := repeat(smallest, acting(tt.do), steps); err == nil {
				t.Errorf("the sequence breaks no rule when it is repeated: %s", steps)
			}
		})
	}
}

func TestARepeatedSequenceMustBePossible(t *testing.T) {
	for steps, want := range map[string]string{
		"0.0.0.0 5.0.0.0": `step 2, "5.0.0.0", is not possible any more`,
		"create":          `reading step 1, "create"`,
	} {
		if err := repeat(smallest, acting(nil), steps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %q", steps, err, want)
		}
	}
}

func TestActsAreRefusedThatNameNothing(t *testing.T) {
	for _, text := range []string{"paint a", "drift db", "delete a slowly", ""} {
		w := smallest
		w.Acts = []string{text}
		if _, err := Run(w, acting(nil), Bounds{}, nil); err == nil || !strings.Contains(err.Error(), "is unknown") {
			t.Errorf("the act %q: got the error %v", text, err)
		}
	}
}

func claimReady(ctx context.Context, parts Parts, foo *samplev1alpha1.Foo) error {
	foo.Status.ObservedGeneration = foo.Generation
	foo.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: foo.Generation}}
	return rewrite(ctx, parts, foo)
}

func rewrite(ctx context.Context, parts Parts, foo *samplev1alpha1.Foo) error {
	foo.Status.Replicas = 1 - foo.Status.Replicas
	_, err := parts.Custom.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(ctx, foo, metav1.UpdateOptions{})
	return err
}

func scaleItsFoo(ctx context.Context, parts Parts, foo *samplev1alpha1.Foo) error {
	footest.FooOwner.Resize(foo, 7)
	_, err := parts.Custom.SamplecontrollerV1alpha1().Foos(foo.Namespace).Update(ctx, foo, metav1.UpdateOptions{})
	return err
}

func deleteItsFoo(ctx context.Context, parts Parts, foo *samplev1alpha1.Foo) error {
	return parts.Custom.SamplecontrollerV1alpha1().Foos(foo.Namespace).Delete(ctx, foo.Name, metav1.DeleteOptions{})
}

func read(ctx context.Context, parts Parts, foo *samplev1alpha1.Foo) error {
	_, err := parts.Custom.SamplecontrollerV1alpha1().Foos(foo.Namespace).Get(ctx, foo.Name, metav1.GetOptions{})
	return err
}

// TestAgesCountShortlyBeforeABound fails if a wait for a bound looks like the same wait a
// second later: the state would seem to be one of rest.
func TestAgesCountShortlyBeforeABound(t *testing.T) {
	ago := func(seconds int64) string {
		e := &encoder{}
		e.age(0, seconds*1e9)
		return string(e.out)
	}
	for _, bound := range lookBacks {
		last := int64(bound / time.Second)
		if ago(last-2) == ago(last-1) || ago(last-1) == ago(last) {
			t.Errorf("the last seconds before %s are the same", bound)
		}
	}
	if ago(40) != ago(50) {
		t.Error("a time between two bounds counts to the second")
	}
}

// TestPausesCount fails if a wait for the next repair looks like the same wait a second later.
func TestPausesCount(t *testing.T) {
	type repairs struct {
		count int
		last  time.Time
	}
	series := fingerprintOf(repairs{6, epoch})
	for _, tt := range []struct {
		before, after int64
		same          bool
	}{{6, 7, false}, {7, 8, false}, {9, 10, true}} {
		if same := series.at(tt.before*1e9).content == series.at(tt.after*1e9).content; same != tt.same {
			t.Errorf("%d and %d s after the sixth repair are the same: %t; the next one is due after 8 s", tt.before, tt.after, same)
		}
	}
}
