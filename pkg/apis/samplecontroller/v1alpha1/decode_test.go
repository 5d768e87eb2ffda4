// SPDX-License-Identifier: Apache-2.0

// Tests of the decoding of statuses.

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/diff"
)

var noon = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

// ready returns a condition with a time.
func ready(since metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: "Ready", Status: "True", Reason: "Available", Message: "all is well", ObservedGeneration: 3, LastTransitionTime: since,
	}
}

// readyText returns the condition of ready as JSON, with any time.
func readyText(since string) string {
	return fmt.Sprintf(`{"type":"Ready","status":"True","reason":"Available","message":"all is well","observedGeneration":3,"lastTransitionTime":%s}`, since)
}

func conditions(items ...string) string {
	return fmt.Sprintf(`{"replicas":2,"conditions":[%s],"selector":"app=nginx"}`, strings.Join(items, ","))
}

func TestStatusDecodesAsFarAsPossible(t *testing.T) {
	sound := func(conditions ...metav1.Condition) FooStatus {
		return FooStatus{Replicas: 2, Selector: "app=nginx", Conditions: conditions}
	}
	other := metav1.Condition{Type: "Other", Status: "False", Reason: "No", LastTransitionTime: noon}
	const otherText = `{"type":"Other","status":"False","reason":"No","message":"","lastTransitionTime":"2026-11-21T12:00:00Z"}`
	for what, row := range map[string]struct {
		stored string
		want   FooStatus
	}{
		"a sound status": {
			`{"observedGeneration":3,"replicas":2,"availableReplicas":1,"selector":"app=nginx","conditions":[` + readyText(`"2026-11-21T12:00:00Z"`) + `]}`,
			FooStatus{ObservedGeneration: 3, Replicas: 2, AvailableReplicas: 1, Selector: "app=nginx", Conditions: []metav1.Condition{ready(noon)}}},
		"null":                                           {`null`, FooStatus{}},
		"an empty object":                                {`{}`, FooStatus{}},
		"a list":                                         {`[1]`, FooStatus{}},
		"unknown fields":                                 {`{"replicas":2,"more":{"a":[1]},"Replicas":"three"}`, FooStatus{Replicas: 2}},
		"an integer that is too large":                   {`{"replicas":2,"availableReplicas":1099511627776,"selector":"app=nginx"}`, sound()},
		"an integer that is a word":                      {`{"replicas":2,"observedGeneration":"three","selector":"app=nginx"}`, sound()},
		"a selector that is a map":                       {`{"replicas":2,"selector":{"app":"nginx"}}`, FooStatus{Replicas: 2}},
		"conditions that are a map":                      {`{"replicas":2,"conditions":{"Ready":"True"},"selector":"app=nginx"}`, sound()},
		"a time in lower case":                           {conditions(readyText(`"2026-11-21t12:00:00z"`), otherText), sound(ready(noon), other)},
		"a time with an invalid zone":                    {conditions(otherText, readyText(`"2026-11-21T12:00:00+99:99"`)), sound(other, ready(metav1.Time{}))},
		"a time with a suffix":                           {conditions(readyText(`"2026-11-21T12:00:00ZTea"`)), sound(ready(metav1.Time{}))},
		"a time that is a number":                        {conditions(readyText(`1795262400`)), sound(ready(metav1.Time{}))},
		"no time":                                        {conditions(readyText(`null`)), sound(ready(metav1.Time{}))},
		"the time zero":                                  {conditions(readyText(`"0001-01-01T00:00:00Z"`)), sound(ready(metav1.Time{}))},
		"a time that is written as zero":                 {conditions(readyText(`"0001-01-01T00:00:00.9Z"`)), sound(ready(metav1.Time{}))},
		"a time before the first year":                   {conditions(readyText(`"0000-12-31T23:59:59Z"`)), sound(ready(metav1.Time{}))},
		"a time after the year 9999":                     {conditions(readyText(`"9999-12-31T23:59:59-01:00"`)), sound(ready(metav1.Time{}))},
		"an unusual time and a number that is too large": {`{"replicas":2,"availableReplicas":1099511627776,"selector":"app=nginx","conditions":[` + readyText(`"2026-11-21t12:00:00z"`) + `]}`, sound(ready(noon))},
		"a condition that is a word":                     {conditions(`"Ready"`, otherText), sound(other)},
		"a condition whose status is a boolean":          {conditions(`{"type":"Ready","status":true,"lastTransitionTime":"2026-11-21T12:00:00Z"}`, otherText), sound(other)},
	} {
		t.Run(what, func(t *testing.T) {
			foo := decode[*Foo](t, fooText("a", row.stored))
			if !equality.Semantic.DeepEqual(row.want, foo.Status) {
				t.Errorf("not as expected (-want +got):\n%s", diff.Diff(row.want, foo.Status))
			}
			if want := (FooSpec{DeploymentName: "web"}); !equality.Semantic.DeepEqual(want, foo.Spec) {
				t.Errorf("the spec is %+v", foo.Spec)
			}
		})
	}
}

// If its list can't be decoded, an informer has no Foos at all.
func TestAListHasTheFooWhoseStatusCantBeRead(t *testing.T) {
	items := fooText("a", `{}`) + "," + fooText("b", `{"availableReplicas":1099511627776}`)
	list := decode[*FooList](t, `{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"FooList","items":[`+items+`]}`)
	if len(list.Items) != 2 {
		t.Errorf("the list has %d Foos", len(list.Items))
	}
}

// TestStatusConvertsFromUnstructured decodes a Foo without the typed client, as fake
// clientsets and conversions from unstructured objects do.
func TestStatusConvertsFromUnstructured(t *testing.T) {
	stored := &unstructured.Unstructured{}
	if err := stored.UnmarshalJSON([]byte(fooText("a", conditions(readyText(`"2026-11-21t12:00:00z"`))))); err != nil {
		t.Fatal(err)
	}
	var foo Foo
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &foo); err != nil {
		t.Fatal(err)
	}
	want := FooStatus{Replicas: 2, Selector: "app=nginx", Conditions: []metav1.Condition{ready(noon)}}
	if !equality.Semantic.DeepEqual(want, foo.Status) {
		t.Errorf("not as expected (-want +got):\n%s", diff.Diff(want, foo.Status))
	}
}

func TestInvalidJSONIsAnError(t *testing.T) {
	for _, text := range []string{``, `{`, `{"replicas":}`, `{"conditions":[}`} {
		if err := new(FooStatus).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestStatusEncodesItsFields(t *testing.T) {
	status := FooStatus{ObservedGeneration: 3, Replicas: 2, Selector: "app=nginx", Conditions: []metav1.Condition{ready(noon)}}
	got, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"observedGeneration":3,"replicas":2,"availableReplicas":0,"selector":"app=nginx","conditions":[{"type":"Ready","status":"True",` +
		`"observedGeneration":3,"lastTransitionTime":"2026-11-21T12:00:00Z","reason":"Available","message":"all is well"}]}`
	if string(got) != want {
		t.Errorf("the status is encoded as\n%s\nnot\n%s", got, want)
	}
}

// decode decodes a text as the typed client does.
func decode[T runtime.Object](t *testing.T, text string) T {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object, err := runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDeserializer(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object.(T)
}

func fooText(name, status string) string {
	return fmt.Sprintf(`{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":{"name":%q,"namespace":"team-a"},`+
		`"spec":{"deploymentName":"web"},"status":%s}`, name, status)
}
