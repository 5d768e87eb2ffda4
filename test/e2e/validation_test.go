// SPDX-License-Identifier: Apache-2.0

// Which Foos and statuses the API server accepts.

package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const notDNS1123 = "must be a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', " +
	"beginning and ending with a letter or digit (for example 'web-1')"

func TestTheAPIServerRefusesABadFooAndSaysWhy(t *testing.T) {
	t.Parallel()
	needsOurCRD(t)
	ns := newNamespace(t)
	tests := []struct {
		what    string
		name    string // "bad" if empty
		foo     string
		message string
	}{
		{what: "no spec", foo: `{}`, message: "spec: Required value"},
		{what: "deploymentName missing", foo: `spec: {replicas: 1}`, message: "spec.deploymentName: Required value"},
		{what: "deploymentName null", foo: `spec: {deploymentName: null}`, message: "spec.deploymentName: Required value"},
		{what: "deploymentName empty", foo: `spec: {deploymentName: ""}`, message: `spec.deploymentName: Invalid value: "": ` + notDNS1123},
		{what: "deploymentName with a bad character", foo: `spec: {deploymentName: my_web}`, message: `spec.deploymentName: Invalid value: "my_web": ` + notDNS1123},
		{what: "deploymentName in upper case", foo: `spec: {deploymentName: Web}`, message: `spec.deploymentName: Invalid value: "Web": ` + notDNS1123},
		{what: "deploymentName with a hyphen at its end", foo: `spec: {deploymentName: web-}`, message: `spec.deploymentName: Invalid value: "web-": ` + notDNS1123},
		{what: "deploymentName of 254 characters", foo: fmt.Sprintf(`spec: {deploymentName: %s}`, strings.Repeat("a", 254)), message: "spec.deploymentName: Too long: may not be more than 253 bytes"},
		{what: "deploymentName a number", foo: `spec: {deploymentName: 7}`, message: "spec.deploymentName in body must be of type string"},
		{what: "replicas 0", foo: `spec: {deploymentName: web, replicas: 0}`, message: "spec.replicas in body should be greater than or equal to 1"},
		{what: "replicas 11", foo: `spec: {deploymentName: web, replicas: 11}`, message: "spec.replicas in body should be less than or equal to 10"},
		{what: "replicas -1", foo: `spec: {deploymentName: web, replicas: -1}`, message: "spec.replicas in body should be greater than or equal to 1"},
		{what: "replicas a word", foo: `spec: {deploymentName: web, replicas: three}`, message: "spec.replicas in body must be of type integer"},
		{what: "replicas a fraction", foo: `spec: {deploymentName: web, replicas: 1.5}`, message: "Checked value must be of type integer with format int32 in spec.replicas"},
		{what: "a name of 64 characters", name: strings.Repeat("a", 64), foo: `spec: {deploymentName: web}`, message: "metadata.name must be no more than 63 characters: it becomes the value of a Pod label"},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			name := test.name
			if name == "" {
				name = "bad"
			}
			_, err := ns.rawFoos().Create(t.Context(), rawFoo(t, name, test.foo), metav1.CreateOptions{})
			isRefused(t, err, test.message)
		})
	}
}

// isRefused checks that the API server refused an object as invalid, with a message.
func isRefused(t *testing.T, err error, message string) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), message) {
		t.Errorf("The API server answered %v\nwant a refusal with %s", err, message)
	}
}

func TestTheAPIServerAcceptsAFooAtTheBounds(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	tests := []struct {
		what string
		name string
		foo  string
		// replicas is the stored value, or nil for none.
		replicas any
	}{
		{"replicas 1", "one", `spec: {deploymentName: web, replicas: 1}`, int64(1)},
		{"replicas 10", "ten", `spec: {deploymentName: web, replicas: 10}`, int64(10)},
		{"replicas left out", "left-out", `spec: {deploymentName: web}`, nil},
		{"replicas null, as a client without omitempty sends it", "null", `spec: {deploymentName: web, replicas: null}`, nil},
		{"deploymentName of 1 character", "short", `spec: {deploymentName: w}`, nil},
		{"deploymentName of 253 characters", "long", fmt.Sprintf(`spec: {deploymentName: %s}`, strings.Repeat("a", 253)), nil},
		{"deploymentName with dots", "dots", `spec: {deploymentName: web.v1}`, nil},
		{"a name of 63 characters", strings.Repeat("a", 63), `spec: {deploymentName: web}`, nil},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			if _, err := ns.rawFoos().Create(t.Context(), rawFoo(t, test.name, test.foo), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			stored, err := ns.rawFoos().Get(t.Context(), test.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, found, err := unstructured.NestedFieldNoCopy(stored.Object, "spec", "replicas")
			if err != nil || got != test.replicas || found != (test.replicas != nil) {
				t.Errorf("The stored replicas are %v (%T), want %v", got, got, test.replicas)
			}
		})
	}
}

func TestTheAPIServerEnforcesTheBoundsOfTheStatus(t *testing.T) {
	t.Parallel()
	needsOurCRD(t)
	ns := newNamespace(t)
	ns.createFoo(t, newFoo("web"))
	const (
		belowZero  = "should be greater than or equal to 0"
		aboveInt32 = "should be less than or equal to 2147483647"
		aboveSafe  = "should be less than or equal to 9007199254740991"
	)
	tests := []struct {
		field   string
		value   int64
		message string // empty if the value is accepted
	}{
		{"availableReplicas", -1, belowZero},
		{"availableReplicas", 1 << 31, aboveInt32},
		{"availableReplicas", 1 << 40, aboveInt32},
		{"availableReplicas", 1<<31 - 1, ""},
		{"replicas", -1, belowZero},
		{"replicas", 1 << 40, aboveInt32},
		{"replicas", 1<<31 - 1, ""},
		{"observedGeneration", -1, belowZero},
		{"observedGeneration", 1 << 53, aboveSafe},
		{"observedGeneration", 1<<53 - 1, ""},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s %d", test.field, test.value), func(t *testing.T) {
			t.Parallel()
			patch := fmt.Sprintf(`{"status":{%q:%d}}`, test.field, test.value)
			_, err := ns.foos().Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
			if test.message != "" {
				isRefused(t, err, "status."+test.field)
				isRefused(t, err, test.message)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTheAPIServerRefusesATimeThatNoClientCanRead checks times of which a single one in
// the store would prevent every typed client from listing Foos.
func TestTheAPIServerRefusesATimeThatNoClientCanRead(t *testing.T) {
	t.Parallel()
	needsOurCRD(t)
	ns := newNamespace(t)
	ns.createFoo(t, newFoo("web"))
	const field, outside = "status.conditions[0]", "must be a time like 2026-11-21T12:00:00Z, from 0001-01-01T00:00:01Z to 9999-12-31T23:59:59Z"
	for since, message := range map[string]string{
		"2026-11-21t12:00:00z":        outside,
		"2026-11-21T12:00:00+99:99":   outside,
		"2026-11-21T12:00:00ZTea":     outside,
		"0000-05-01T00:00:00Z":        outside,
		"0001-01-01T00:00:00Z":        outside,
		"9999-12-31T23:59:59-01:00":   outside,
		"2026-11-31T12:00:00Z":        "must be of type date-time",
		"0001-01-01T00:00:01Z":        "",
		"9999-12-31T23:59:59Z":        "",
		"2026-11-21T12:00:00.5-07:00": "",
	} {
		t.Run(since, func(t *testing.T) {
			t.Parallel()
			patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Available","message":"","lastTransitionTime":%q}]}}`, since)
			_, err := ns.foos().Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
			if message != "" {
				isRefused(t, err, field)
				isRefused(t, err, message)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}
