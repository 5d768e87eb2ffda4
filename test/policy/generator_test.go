// SPDX-License-Identifier: Apache-2.0

// The generator, with rows of any kind: what it makes of them must pass the tests of a
// policy that is written by hand.

package policy

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// generatedFor are rows for which no policy is shipped.
func generatedFor() []kind {
	return []kind{
		&row[*appsv1.Deployment]{Child: plan.Deployment(shippedImage), plausible: plausibleDeployment, others: shareDeployment},
		&row[*corev1.Service]{Child: serviceRow()},
		&row[*corev1.ConfigMap]{Child: configMapRow(), updates: []attempt[*corev1.ConfigMap]{
			{"a file of others", func(config *corev1.ConfigMap) { config.BinaryData = map[string][]byte{"other": {1}} }, "may change only server.name in the binaryData"},
			{"a file in the way", func(config *corev1.ConfigMap) { config.BinaryData = map[string][]byte{"server.name": {1}} }, "may set the binaryData.server.name"},
			{"a text of others", func(config *corev1.ConfigMap) { config.Data["other"] = "x" }, "in the data"},
		}},
	}
}

// serviceRow owns a map, and a field of each element of a list.
func serviceRow() plan.Child[*corev1.Service] {
	return plan.Child[*corev1.Service]{
		Kind:  "Service",
		Name:  func(foo *samplev1alpha1.Foo) string { return foo.Name },
		Empty: func() *corev1.Service { return &corev1.Service{} },
		New:   func(*samplev1alpha1.Foo) *corev1.Service { return &corev1.Service{} },
		SetOwned: func(service *corev1.Service, foo *samplev1alpha1.Foo, _ plan.Seen) {
			service.Spec.Selector = map[string]string{"app": "nginx", "controller": foo.Name}
			if len(service.Spec.Ports) != 1 {
				service.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("web")}}
			}
			service.Spec.Ports[0].Port = 80
		},
	}
}

// configMapRow owns three keys of a map: one is the same for all Foos, one has the Foo's
// name in it, and one depends on the spec. It removes a key from another map.
func configMapRow() plan.Child[*corev1.ConfigMap] {
	return plan.Child[*corev1.ConfigMap]{
		Kind:  "ConfigMap",
		Name:  func(foo *samplev1alpha1.Foo) string { return foo.Name },
		Empty: func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		New:   func(*samplev1alpha1.Foo) *corev1.ConfigMap { return &corev1.ConfigMap{Immutable: new(false)} },
		SetOwned: func(config *corev1.ConfigMap, foo *samplev1alpha1.Foo, _ plan.Seen) {
			if config.Data == nil {
				config.Data = map[string]string{}
			}
			config.Data["mode"] = "it's \"plain\"\n"
			config.Data["server.name"] = "web." + foo.Name + ".example.com"
			config.Data["deployment"] = foo.Spec.DeploymentName
			delete(config.BinaryData, "server.name") // a key can't be in both
		},
	}
}

func TestGeneratedPolicies(t *testing.T) {
	for _, k := range generatedFor() {
		t.Run(k.name(), func(t *testing.T) {
			t.Parallel()
			text := k.policy(t)
			objects := slices.DeleteFunc(shipped(t), func(o object) bool {
				switch o.(type) {
				case *admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
					return true
				}
				return false
			})
			s := newServerWith(t, "", append(objects, decode([]byte(text))...))
			for what, test := range map[string]func(t *testing.T, s *server){
				"creates": k.testCreates, "repairs": k.testRepairs, "adoptions": k.testAdoptions, "deletes": k.testDeletes,
				"fields of new children": k.testFieldsOfNewChildren, "fields of children": k.testFieldsOfChildren, "attempts": k.testAttempts,
			} {
				t.Run(what, func(t *testing.T) { test(t, s) })
			}
			if t.Failed() {
				t.Logf("The policy:\n%s", text)
			}
		})
	}
}
