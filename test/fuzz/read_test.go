// SPDX-License-Identifier: Apache-2.0

// FuzzAcceptedFooIsRead: the typed client reads every Foo that the API server accepts.

package fuzz

import (
	encodingjson "encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

// request returns a Foo made of arbitrary JSON, as any client could send it, or nil if
// the parts are not JSON.
func request(metadata, spec, status string) []byte {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
		"metadata": encodingjson.RawMessage(metadata), "spec": encodingjson.RawMessage(spec), "status": encodingjson.RawMessage(status),
	})
	if err != nil {
		return nil
	}
	return text
}

const (
	plainMetadata = `{"name":"a","namespace":"team-a"}`
	plainSpec     = `{"deploymentName":"web","replicas":2}`
)

// condition returns a status whose condition has these fields added or replaced.
func condition(fields string) string {
	return fmt.Sprintf(`{"conditions":[{"type":"Ready","status":"True","reason":"Available","message":"",`+
		`"lastTransitionTime":"2026-11-21T12:00:00Z"%s}]}`, fields)
}

// FuzzAcceptedFooIsRead sends Foos as JSON. If the API server accepted one that the typed
// client can't read, the informer would fail for all Foos, and with it the controller.
func FuzzAcceptedFooIsRead(f *testing.F) {
	for _, spec := range []string{plainSpec, `{"deploymentName":"web"}`, `{"deploymentName":"w.e-b","replicas":null,"more":[1]}`, `{"deploymentName":"web","replicas":10}`} {
		f.Add(plainMetadata, spec, `{}`)
	}
	for _, status := range []string{
		`{"observedGeneration":9007199254740991,"replicas":2147483647,"availableReplicas":2147483647,"selector":"app=nginx"}`,
		`{"availableReplicas":1099511627776}`, `{"availableReplicas":1.0}`, `{"observedGeneration":1e2}`, `{"replicas":-1}`,
		condition(``), condition(`,"observedGeneration":3`), condition(`,"observedGeneration":9223372036854775807`),
		condition(`,"lastTransitionTime":"2026-11-21T12:00:00.5+01:00"`), condition(`,"lastTransitionTime":null`),
		condition(`,"lastTransitionTime":"2026-11-21t12:00:00z"`), condition(`,"lastTransitionTime":"0001-01-01T00:00:00Z"`),
		`{"conditions":[]}`, `{"conditions":null}`, `null`,
	} {
		f.Add(plainMetadata, plainSpec, status)
	}
	f.Add(`{"name":"a","namespace":"n","labels":{"a":"b"},"generation":3,"creationTimestamp":"2026-11-21T12:00:00Z","ownerReferences":[]}`, plainSpec, `{}`)

	s := newServer(f)
	f.Fuzz(func(t *testing.T, metadata, spec, status string) {
		sent := request(metadata, spec, status)
		if sent == nil {
			return
		}
		stored, err := s.accept(t, sent)
		if err != nil {
			return
		}
		text, err := stored.MarshalJSON()
		must(t, err)
		foo := read(t, text)
		for i := range foo.Status.Conditions { // the client encodes whole seconds
			since := &foo.Status.Conditions[i].LastTransitionTime
			*since = since.Rfc3339Copy()
		}
		checkBounds(t, foo)
		// The controller writes the object that it read, with another status.
		back, err := runtime.Encode(scheme.Codecs.LegacyCodec(samplev1alpha1.SchemeGroupVersion), foo)
		must(t, err)
		again, err := s.accept(t, back)
		if err != nil {
			t.Fatalf("the object read from\n%s\nis encoded as\n%s\nand refused: %v", text, back, err)
		}
		if len(foo.Status.Conditions) == 0 {
			return // the client leaves out an empty list, and the default takes its place
		}
		text, err = again.MarshalJSON()
		must(t, err)
		if now := read(t, text); !equality.Semantic.DeepEqual(foo, now) {
			t.Errorf("the object read as\n%v\nis read as\n%v\nafter it was written back", foo, now)
		}
	})
}

// read decodes a response as the typed client does. The client ignores the parts of a
// status that it can't read. A status that the API server accepts must have no such
// parts.
func read(t *testing.T, answer []byte) *samplev1alpha1.Foo {
	t.Helper()
	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), answer)
	if err != nil {
		t.Fatalf("the API server accepts a Foo that the typed client can't read: %v\n%s", err, answer)
	}
	foo := object.(*samplev1alpha1.Foo)
	type plain samplev1alpha1.FooStatus // without UnmarshalJSON
	var stored struct {
		Status plain `json:"status"`
	}
	if err := json.Unmarshal(answer, &stored); err != nil {
		t.Fatalf("the API server accepts a status that the typed client can't read: %v\n%s", err, answer)
	}
	if whole := samplev1alpha1.FooStatus(stored.Status); !equality.Semantic.DeepEqual(whole, foo.Status) {
		t.Fatalf("the API server accepts a status that the typed client reads only in part: of\n%v\nit reads\n%v", whole, foo.Status)
	}
	return foo
}

// checkBounds fails if an accepted Foo violates types.go.
func checkBounds(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	if why := outOfBounds(foo); why != "" {
		t.Errorf("the API server accepts a Foo, although %s", why)
	}
}
