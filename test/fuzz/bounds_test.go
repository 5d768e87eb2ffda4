// SPDX-License-Identifier: Apache-2.0

// FuzzBoundsAreThoseOfTheTypes: the API server enforces the bounds that types.go states.

package fuzz

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

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
