// SPDX-License-Identifier: Apache-2.0

// The typed client reads every Foo that the API server accepts: its integers, and the
// bounds that the definition promises. The API server is made of the real one's libraries.

package fuzz

import (
	encodingjson "encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

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
	// Integers that do not fit the types.
	for field, numbers := range map[string]string{
		`{"replicas":%s}`:                     "-1 2147483648 1099511627776 1e20 1.5",
		`{"availableReplicas":%s}`:            "-1 2147483648 1099511627776 1e20 1.5",
		`{"observedGeneration":%s}`:           "-1 9007199254740992 9223372036854775808 1e20 1.5",
		condition(`,"observedGeneration":%s`): "-1 9223372036854775808 1e20 1.5",
	} {
		for number := range strings.FieldsSeq(numbers) {
			f.Add(plainMetadata, plainSpec, fmt.Sprintf(field, number))
		}
	}
	for number := range strings.FieldsSeq("0 11 -1 2147483648 1099511627776 1e20 1.5") {
		f.Add(plainMetadata, fmt.Sprintf(`{"deploymentName":"web","replicas":%s}`, number), `{}`)
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
		if why := outOfBounds(foo); why != "" {
			t.Errorf("the API server accepts a Foo, although %s", why)
		}
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

var (
	// A DNS-1123 subdomain, as defined by RFC 1123.
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	reason    = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

// outOfBounds describes how a Foo violates the comments of types.go and of
// metav1.Condition. It returns "" if the Foo complies.
func outOfBounds(foo *samplev1alpha1.Foo) string {
	spec, status := foo.Spec, foo.Status
	switch {
	case len(foo.Name) > 63:
		return "its name is too long for a label"
	case len(spec.DeploymentName) > 253 || !subdomain.MatchString(spec.DeploymentName):
		return "spec.deploymentName can't be an object's name"
	case spec.Replicas != nil && (*spec.Replicas < 1 || *spec.Replicas > 10):
		return "spec.replicas is not from 1 to 10"
	case status.ObservedGeneration < 0 || status.ObservedGeneration > 1<<53-1:
		return "status.observedGeneration is not from 0 to 2^53-1"
	case status.Replicas < 0 || status.AvailableReplicas < 0:
		return "a number of replicas in the status is less than 0"
	case utf8.RuneCountInString(status.Selector) > 4096:
		return "status.selector has more than 4096 characters"
	}
	for _, condition := range status.Conditions {
		switch {
		case condition.ObservedGeneration < 0:
			return "a condition's observedGeneration is less than 0"
		case utf8.RuneCountInString(condition.Message) > 32768:
			return "a condition's message has more than 32768 characters"
		case len(condition.Reason) > 1024 || !reason.MatchString(condition.Reason):
			return "a condition's reason is not in CamelCase"
		}
	}
	return ""
}

// FuzzBoundsAreThoseOfTheTypes sends Foos encoded by a Go program. The API server must
// accept those that comply with types.go, and no others.
func FuzzBoundsAreThoseOfTheTypes(f *testing.F) {
	f.Add("a", "web", int32(2), true, int64(1), int32(2), int32(2), "app=nginx,controller=a", "Available", "all is well", int64(1), uint32(1))
	f.Add(strings.Repeat("a", 63), strings.Repeat("a", 253), int32(10), true, int64(1<<53-1), int32(1<<31-1), int32(1<<31-1),
		strings.Repeat("\u00e4", 4096), "A", strings.Repeat("\u00e4", 32768), int64(1<<62), uint32(1<<31))
	f.Add(strings.Repeat("a", 64), "web", int32(1), false, int64(0), int32(0), int32(0), "", "A", "", int64(0), uint32(0))
	f.Add("a", strings.Repeat("a", 254), int32(11), true, int64(1<<53), int32(-1), int32(-1), "", "", "", int64(-1), uint32(0))
	f.Add("a.b", "Web\n", int32(0), true, int64(-1), int32(0), int32(0), strings.Repeat("a", 4097), "A ", strings.Repeat("a", 32769), int64(0), uint32(0))

	s := newServer(f)
	f.Fuzz(func(t *testing.T, name, deploymentName string, replicas int32, sized bool, generation int64, has, available int32,
		selector, reason, message string, conditionGeneration int64, since uint32) {
		if !subdomain.MatchString(name) || len(name) > 253 {
			return // the API server's rule for the names of all kinds
		}
		foo := &samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"},
			Spec:       samplev1alpha1.FooSpec{DeploymentName: text(deploymentName)},
			Status: samplev1alpha1.FooStatus{
				ObservedGeneration: generation, Replicas: has, AvailableReplicas: available, Selector: text(selector),
				Conditions: []metav1.Condition{{
					Type: samplev1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: text(reason), Message: text(message),
					ObservedGeneration: conditionGeneration, LastTransitionTime: metav1.NewTime(time.Unix(int64(since), 0)),
				}},
			},
		}
		if sized {
			foo.Spec.Replicas = &replicas
		}
		sent, err := runtime.Encode(scheme.Codecs.LegacyCodec(samplev1alpha1.SchemeGroupVersion), foo)
		must(t, err)
		_, err = s.accept(t, sent)
		why := outOfBounds(foo)
		if err == nil && why != "" {
			t.Errorf("the API server accepts a Foo, although %s", why)
		}
		if err != nil && why == "" {
			t.Errorf("the API server refuses a valid Foo: %v", err)
		}
	})
}

func text(bytes string) string { return strings.ToValidUTF8(bytes, "?") }

const crdFile = "../../../artifacts/crd/samplecontroller.k8s.io_foos.yaml"

// server handles objects of one version of a CustomResourceDefinition, as the API server
// does in pkg/apiserver/customresource_handler.go of k8s.io/apiextensions-apiserver, without a
// network and a store.
type server struct {
	schema   *structuralschema.Structural
	strategy rest.RESTCreateStrategy
}

func newServer(tb testing.TB) *server {
	tb.Helper()
	text, err := os.ReadFile(crdFile)
	must(tb, err)
	var crd apiextensionsv1.CustomResourceDefinition
	must(tb, yaml.UnmarshalStrict(text, &crd))
	if len(crd.Spec.Versions) != 1 {
		tb.Fatalf("the CRD has %d versions, but the tests cover only one", len(crd.Spec.Versions))
	}
	version, s := crd.Spec.Versions[0], &server{}
	var properties apiextensions.JSONSchemaProps
	must(tb, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &properties, nil))
	s.schema, err = structuralschema.NewStructural(&properties)
	must(tb, err)
	validator, _, err := validation.NewSchemaValidator(&properties)
	must(tb, err)
	var parts apiextensions.CustomResourceSubresources
	must(tb, apiextensionsv1.Convert_v1_CustomResourceSubresources_To_apiextensions_CustomResourceSubresources(version.Subresources, &parts, nil))
	kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
	s.strategy = customresource.NewStrategy(nil, true, kind, validator, nil, s.schema, parts.Status, parts.Scale, nil)
	return s
}

// accept returns the object of a request as it would be stored, including its status, or
// the error that refuses it.
func (s *server) accept(tb testing.TB, request []byte) (*unstructured.Unstructured, error) {
	tb.Helper()
	decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, request)
	if err != nil {
		return nil, err
	}
	object, ok := decoded.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("a list")
	}
	if err := s.coerce(object); err != nil {
		return nil, err
	}
	return object, s.strategy.Validate(tb.Context(), object).ToAggregate()
}

// coerce sets defaults, drops unknown fields, and checks the types of the metadata.
func (s *server) coerce(object *unstructured.Unstructured) error {
	apiVersion, kind := object.GetAPIVersion(), object.GetKind()
	defaulting.Default(object.Object, s.schema)
	metadata, found, err := objectmeta.GetObjectMeta(object.Object, false)
	if err != nil {
		return err
	}
	if !found {
		return errors.New("no metadata")
	}
	pruning.Prune(object.Object, s.schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, s.schema)
	if err := objectmeta.Coerce(nil, object.Object, s.schema, false, false); err != nil {
		return err
	}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	return objectmeta.SetObjectMeta(object.Object, metadata)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
