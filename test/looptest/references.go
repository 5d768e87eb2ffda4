// SPDX-License-Identifier: Apache-2.0

// Objects that an owner names and does not own.

package looptest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

// secret is named by the Foo "a".
func secret(value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: footest.Namespace, UID: "secret"}, Data: map[string][]byte{"key": []byte(value)},
	}
}

// naming declares Foos with one ConfigMap that name a Secret, with an informer or without.
func naming(hasInformer bool, change func(ref *plan.Ref[*samplev1alpha1.Foo, *corev1.Secret])) func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
	ref := plan.Ref[*samplev1alpha1.Foo, *corev1.Secret]{
		Kind: "Secret", Resource: secrets, NamedBy: "spec.deploymentName",
		Names:  func(foo *samplev1alpha1.Foo) []string { return []string{foo.Spec.DeploymentName} },
		Digest: func(secret *corev1.Secret) any { return secret.Data },
		Judge: func(secret *corev1.Secret) plan.Readiness {
			if len(secret.Data["key"]) == 0 {
				return plan.Stalled("SecretFailed", "Secret %q has no key", secret.Name)
			}
			return plan.Ready("")
		},
	}
	change(&ref)
	return func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		var informer cache.SharedIndexInformer
		if hasInformer {
			informer = clients.KubeInformers.Core().V1().Secrets().Informer()
		}
		return []table.Row[*samplev1alpha1.Foo]{
			table.Uses(ref, informer, clients.Kube.CoreV1().Secrets),
			configMapsOf(clients, shards(followingSecret)),
		}
	}
}

// followingSecret annotates each shard with the digest of the Secret.
func followingSecret(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]) {
	own := row.SetOwned
	row.SetOwned = func(shard *corev1.ConfigMap, foo *samplev1alpha1.Foo, view *plan.View) {
		own(shard, foo, view)
		view.AnnotateDigest(&shard.ObjectMeta, "secret", "Secret")
	}
}

func asDeclared(*plan.Ref[*samplev1alpha1.Foo, *corev1.Secret]) {}

// forBoth runs a test with and without an informer, and tells it how long a change may take to be seen.
func (l Loop) forBoth(t *testing.T, change func(ref *plan.Ref[*samplev1alpha1.Foo, *corev1.Secret]), body func(f *fixture, see func())) {
	t.Helper()
	for name, seen := range map[string]time.Duration{"informer": time.Second, "polled": plan.DefaultPoll * 11 / 10} {
		t.Run(name, func(t *testing.T) {
			l.testRow(t, naming(name == "informer", change), footest.Foo("a", footest.WithReplicas(1)), func(f *fixture) {
				body(f, func() { advance(seen) })
			})
		})
	}
}

func (l Loop) TestAReferenceIsFollowed(t *testing.T) {
	l.forBoth(t, asDeclared, func(f *fixture, see func()) {
		f.becomeReady("web-0")
		ready := f.ExpectReady("a", "False SecretMissing of 1")
		footest.ExpectEqual(f.T, "the message", `Secret "web" does not exist in the namespace team-a: create it, or change spec.deploymentName`, ready.Message)
		f.store(secret("1"))
		see()
		f.ExpectReady("a", "True Available of 1")
		digest := f.shard("web-0").Annotations["secret"]
		for i := range 20 {
			f.store(secret(fmt.Sprint(2 + i)))
			see()
			next := f.shard("web-0").Annotations["secret"]
			if next == digest || next == "" {
				f.T.Fatalf("after change %d, the digest is still %q", i, next)
			}
			digest = next
			f.ExpectReady("a", "True Available of 1")
		}
		f.TakeWrites()
		labeled := secret("21")
		labeled.Labels = map[string]string{"team": "a"}
		f.store(labeled)
		see()
		f.ExpectWrites()
		f.store(secret(""))
		see()
		f.ExpectReady("a", "False SecretFailed of 1")
		footest.Must(f.T, f.API.Delete(f.Kube.Tracker(), secrets, footest.Namespace, "web"))
		see()
		f.ExpectReady("a", "False SecretMissing of 1")
		f.respec(scaleTo(2))
		f.expectShards("one more, although the Secret is missing", "web-0", "web-1")
	})
}

func (l Loop) TestAReferenceMayHoldBackTheChildren(t *testing.T) {
	l.forBoth(t, func(ref *plan.Ref[*samplev1alpha1.Foo, *corev1.Secret]) { ref.Blocks = true }, func(f *fixture, see func()) {
		f.expectShards("the Secret is missing")
		f.store(secret(""))
		see()
		f.expectShards("the Secret is unfit")
		f.store(secret("1"))
		see()
		f.expectShards("the Secret is fit", "web-0")
	})
}

// A Secret that thousands of Foos name is read once for each version, and at rest not at all.
func (l Loop) TestManyOwnersNameOneSecret(t *testing.T) {
	l.testRow(t, naming(true, asDeclared), footest.Foo("a", footest.WithReplicas(1)), func(f *fixture) {
		for i := range 20 {
			foo := footest.Foo(fmt.Sprint("b-", i), footest.WithReplicas(0))
			f.Put(foo)
		}
		f.store(secret("1"))
		f.becomeReady("web-0")
		f.TakeWrites()
		f.store(secret("2"))
		advance(time.Minute)
		if reads := f.Count("get secrets"); reads < 1 || reads > 2 { // two workers may read at the same time
			f.T.Errorf("the Secret is read %d times", reads)
		}
		f.TakeWrites()
		advance(time.Hour)
		footest.ExpectEqual(f.T, "reads at rest", 0, f.Count("get secrets"))
	})
}

// The cache may lag behind the Secret when a Foo becomes ready with a new spec.
func (l Loop) TestReferencesAreReadForEachSpec(t *testing.T) {
	l.testRow(t, naming(true, asDeclared), footest.Foo("a", footest.WithReplicas(0)), func(f *fixture) {
		f.store(secret("1"))
		advance(time.Minute)
		f.ExpectReady("a", "True Available of 1")
		f.TakeWrites()
		f.respec(scaleTo(1))
		f.becomeReady("web-0")
		f.ExpectReady("a", "True Available of 2")
		footest.ExpectEqual(t, "the reads of the Secret", 1, f.Count("get secrets"))
		f.TakeWrites()
		advance(time.Hour)
		footest.ExpectEqual(t, "the reads at rest", 0, f.Count("get secrets"))
		f.expectForgotten()
	})
}

func (l Loop) TestASyncThatIsAskedForReadsReferences(t *testing.T) {
	l.testRow(t, naming(false, asDeclared), footest.Foo("a", footest.WithReplicas(0)), func(f *fixture) {
		f.store(secret("1"))
		advance(2 * plan.DefaultPoll)
		f.store(secret(""))
		foo := f.StoredFoo("a")
		metav1.SetMetaDataAnnotation(&foo.ObjectMeta, f.kind.SyncRequested(), "now")
		f.Put(foo)
		advance(time.Second)
		f.ExpectReady("a", "False SecretFailed of 1")
	})
}

func (l Loop) TestAReferenceThatMayNotBeRead(t *testing.T) {
	l.testRow(t, naming(false, asDeclared), footest.Foo("a", footest.WithReplicas(1)), func(f *fixture) {
		f.store(secret("1"))
		advance(2 * plan.DefaultPoll)
		synctest.Wait()
		forbidden := f.Refuse("get", "secrets", apierrors.NewForbidden(secrets.GroupResource(), "web", nil))
		f.becomeReady("web-0")
		advance(2 * time.Minute)
		f.ExpectReady("a", "False SecretFailed of 1")
		f.respec(scaleTo(2))
		f.expectShards("the children are synced", "web-0", "web-1")
		forbidden.Over.Store(true)
		advance(10 * time.Minute)
		f.becomeReady("web-1")
		f.ExpectReady("a", "True Available of 2")
	})
}

// Only who changes the Secret sets the pace, not who undoes what follows from it: a second controller, for example, which
// has another version of the Secret.
func (l Loop) TestWhoUndoesWhatFollowsAReferenceIsAnOpponent(t *testing.T) {
	l.testRow(t, naming(true, asDeclared), footest.Foo("a", footest.WithReplicas(1)), func(f *fixture) {
		f.store(secret("1"))
		f.becomeReady("web-0")
		f.TakeWrites()
		for range 60 {
			shard := f.shard("web-0")
			metav1.SetMetaDataAnnotation(&shard.ObjectMeta, "secret", "another")
			f.store(shard) // and a second passes
		}
		if updates := f.Count("patch configmaps"); updates < 6 || updates > 9 {
			f.T.Errorf("in a minute, it repairs %d times", updates)
		}
		f.ExpectReady("a", "False ConfigMapFailed of 1")
		f.store(secret("2"))
		if f.shard("web-0").Annotations["secret"] == "another" {
			f.T.Error("a change of the Secret waits for the end of the fight")
		}
		advance(10 * time.Minute)
		f.ExpectReady("a", "True Available of 1")
	})
}
