// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// see returns the world of a Foo that names Secrets, after what exists of them was read.
func see(names []string, secrets map[string]*corev1.Secret) *World {
	kind := &Kind{Name: "Foo", Resource: footest.FoosResource}
	ref := Ref[*samplev1alpha1.Foo, *corev1.Secret]{
		Kind: "Secret", Resource: corev1.SchemeGroupVersion.WithResource("secrets"), NamedBy: "spec.secret",
		Names:  func(*samplev1alpha1.Foo) []string { return names },
		Digest: func(secret *corev1.Secret) any { return secret.Data },
	}
	undigested := ref
	undigested.Kind, undigested.Digest, undigested.Names = "ConfigMap", nil, func(*samplev1alpha1.Foo) []string { return nil }
	kind.References = []*ChildKind{ref.Of(kind), undigested.Of(kind)}
	world := kind.NewWorld(footest.Foo("a"), func(*ChildKind) Found {
		return Found{Named: func(key cache.ObjectName) Object {
			if secret := secrets[key.Name]; secret != nil {
				return secret
			}
			return nil
		}}
	})
	for step := range world.Steps() {
		world.Record(step, step.AsFound())
	}
	return world
}

func TestAnAnnotationFollowsTheDigest(t *testing.T) {
	both := map[string]*corev1.Secret{"a": {Data: map[string][]byte{"key": []byte("1")}}, "b": {}}
	for name, test := range map[string]struct {
		names     []string
		isChanged bool
		isRemoved bool
	}{
		"one":                  {names: []string{"a"}, isChanged: true},
		"two":                  {names: []string{"a", "b"}, isChanged: true},
		"missing":              {names: []string{"c"}},
		"one of two missing":   {names: []string{"c", "a"}},
		"none is named":        {isChanged: true, isRemoved: true},
		"an empty name":        {names: []string{""}, isChanged: true, isRemoved: true},
		"a name that can't be": {names: []string{"../a"}},
	} {
		t.Run(name, func(t *testing.T) {
			template := &metav1.ObjectMeta{Annotations: map[string]string{"digest": "earlier", "other": "kept"}}
			see(test.names, both).view.AnnotateDigest(template, "digest", "Secret")
			digest, isSet := template.Annotations["digest"]
			if isSet == test.isRemoved || (digest != "earlier") != test.isChanged || template.Annotations["other"] != "kept" {
				t.Errorf("the annotations are %v", template.Annotations)
			}
		})
	}
}

func TestADigestThatNothingDeclaresPanics(t *testing.T) {
	for kind, want := range map[string]string{
		"Secrets":   `has no reference to the kind "Secrets", but to ["Secret" "ConfigMap"]`,
		"ConfigMap": `to the kind "ConfigMap" has no Digest`,
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, want) {
					t.Errorf("for %s it says %q", kind, said)
				}
			}()
			see(nil, nil).view.Digest(kind)
		}()
	}
}

// The client refuses to send a request with such a name, as if the API server were away.
func TestAReferenceToWhatCannotExist(t *testing.T) {
	for _, name := range []string{"../a", "a/b", "..", "My_Secret", strings.Repeat("a", 254)} {
		world := see([]string{name}, nil)
		if len(world.steps) != 1 || world.steps[0].Action != ActionNone {
			t.Fatalf("%s: the steps are %v", name, world.steps)
		}
		is := world.steps[0].judgeReference(&world.outcomes[0])
		if !is.Stalled || is.Reason != "SecretMissing" || !strings.Contains(is.Message, "cannot exist: change spec.secret: ") {
			t.Errorf("%s: %+v", name, is)
		}
	}
}
