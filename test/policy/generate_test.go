// SPDX-License-Identifier: Apache-2.0

// The policies of further kinds are generated: from the rows of internal/kinds, and from the items of the
// policy for Deployments that judge nothing but metadata. And rows for which no policy is shipped: each
// owns its children in another way.

package policy

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/randfill"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

var update = flag.Bool("update", false, "write the generated policies")

// chosen are the fields that the API server sets beside its defaults, before it asks the
// policy: [*] stands for each element of a list.
var chosen = map[schema.GroupResource][]string{
	{Resource: "services"}: {"spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy", "spec.ports.[*].nodePort"},
}

// With -update, the test writes the policies. A kind that has its own policy, written
// by hand, gets none.
func TestTheGeneratedPoliciesAreUpToDate(t *testing.T) {
	wanted := sets.New[string]()
	for _, k := range rows {
		if isByHand(t, k) {
			continue
		}
		file := fmt.Sprintf("%s/admission-policy-%s.yaml", permissions, k.resource(t).Resource)
		wanted.Insert(filepath.Clean(file))
		text := k.policy(t)
		if *update {
			footest.Must(t, os.WriteFile(file, []byte(text), 0o644))
			addToList(t, filepath.Base(file))
			continue
		}
		if found, err := os.ReadFile(file); err != nil || string(found) != text {
			t.Errorf("%s is not what the row of the %s makes of it (%v): run make update-policy", file, k.Kind, err)
		}
	}
	for _, policy := range policies(t) {
		if strings.HasPrefix(policy.text, generated) && !wanted.Has(filepath.Clean(policy.file)) {
			t.Errorf("%s has no row: delete it", policy.file)
		}
	}
}

// isByHand reports whether a policy written by hand covers a kind.
func isByHand(t *testing.T, k *row) bool {
	t.Helper()
	for _, policy := range policies(t) {
		if policy.covers(k.resource(t)) && !strings.HasPrefix(policy.text, generated) {
			return true
		}
	}
	return false
}

// addToList adds a file to kustomize's list, after the policy that is written by hand.
func addToList(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(list)
	footest.Must(t, err)
	first := "- " + filepath.Base(byHand) + "\n"
	if line := "- " + file + "\n"; !strings.Contains(string(text), line) {
		footest.Must(t, os.WriteFile(list, []byte(strings.Replace(string(text), first, first+line, 1)), 0o644))
	}
}

// policy returns the text of the generated policy.
func (r *row) policy(t *testing.T) string {
	t.Helper()
	foo := r.wanting()[0]
	asked := r.Desired(foo, nil, r.seenBy(foo))
	if len(asked.GetLabels())+len(asked.GetAnnotations())+len(asked.GetFinalizers()) > 0 || r.ownedPart(t).fields["metadata"] != nil {
		t.Fatalf("the row of the %s sets labels, annotations or finalizers of the child itself, which no generated policy allows: write the policy by hand", r.Kind)
	}
	own := &rules{owner: r.owner(), kind: r.Kind, aKind: article(r.Kind) + " " + r.Kind}
	own.write(r.pattern(t), r.ownedPart(t))
	text, err := os.ReadFile(byHand)
	footest.Must(t, err)
	policy, err := assemble(string(text), own, r.resource(t))
	footest.Must(t, err)
	return policy
}

// pattern returns what the new children of all Foos have in common.
func (r *row) pattern(t *testing.T) *pattern {
	t.Helper()
	var values []any
	for _, foo := range r.various(t) {
		child, err := json.Marshal(stored[object](t, r.Desired(foo, nil, r.seenBy(foo))))
		footest.Must(t, err)
		var fields map[string]any
		footest.Must(t, kjson.Unmarshal(bytes.ReplaceAll(child, []byte(foo.GetName()), []byte(nameOfAny)), &fields))
		delete(fields, "metadata")
		delete(fields, "status")
		values = append(values, fields)
	}
	p := patternOf(values)
	for _, path := range chosen[r.resource(t).GroupResource()] {
		p.chosen(strings.Split(path, ".")...)
	}
	return p
}

// various returns Foos with random specs, and some of a size, that ask for a child of the kind.
// No other text in a child has their names in it.
func (r *row) various(t *testing.T) (all []plan.Owner) {
	t.Helper()
	for seed := range int64(23) {
		foo := r.newFoo(fmt.Sprintf("various-%d", seed), int32(seed%3))
		if seed > 2 {
			randfill.NewWithSeed(seed).NilChance(.2).NumElements(1, 2).Funcs(fillQuantity).Fill(foo.GetSpec())
		}
		r.ask(foo)
		all = append(all, foo)
	}
	return all
}

// ownedPart returns what SetOwned changes in children with random content.
func (r *row) ownedPart(t *testing.T) *part {
	t.Helper()
	if r.owned != nil {
		return r.owned
	}
	owned := &part{}
	for _, foo := range r.wanting() {
		view := r.seenBy(foo)
		asked := fieldsOf(t, stored[object](t, r.Desired(foo, nil, view)))
		for seed := range uint64(200) {
			child := r.random(t, foo, seed)
			after := child.DeepCopyObject().(object)
			r.SetOwned(after, foo, view)
			owned.observe(fieldsOf(t, child), fieldsOf(t, stored(t, after)), asked)
		}
	}
	owned.settle(r.pattern(t))
	r.owned = owned
	return owned
}

func TestGeneratedPolicies(t *testing.T) {
	for _, k := range rowsWithoutPolicy() {
		t.Run(k.Kind, func(t *testing.T) {
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
			k.testPolicy(t, s)
			if t.Failed() {
				t.Logf("The policy:\n%s", text)
			}
		})
	}
}

// A refusal is in the words of the kind.
func TestRefusalsAreInWordsOfTheKind(t *testing.T) {
	other := &footest.OwnerRow{Kind: &footest.Kind{}}
	other.Kind.Kind, other.Resource.Resource = "HTTPMouse", "httpmice"
	if got := inWordsOf(other, "Foos, wasAFoos, a Foo"); got != "HTTPMice, wasAHTTPMice, a HTTPMouse" {
		t.Errorf("the text is %q", got)
	}
}

func rowsWithoutPolicy() []*row {
	foos := kinds.Declared(kinds.Options{Image: shippedImage})[0]
	configMaps := rowOf("ConfigMap", setConfigMap)
	configMaps.Init = func(configMap *corev1.ConfigMap, _ *samplev1alpha1.Foo) { configMap.Immutable = new(false) }
	return []*row{
		{ChildKind: foos.Children[0], plausible: deployments.plausible, others: deployments.others, updates: anyType([]attempt[*appsv1.Deployment]{
			{"others' container", func(d *appsv1.Deployment) { podOf(d).Containers[1].Command = shell },
				"may change only nginx in the spec.template.spec.containers"},
		}...)},
		{ChildKind: rowOf("Service", setService).Of(foos)},
		{ChildKind: rowOf("Ingress", setIngress).Of(foos)},
		{ChildKind: rowOf("PodDisruptionBudget", setBudget).Of(foos)},
		{ChildKind: rowOf("HorizontalPodAutoscaler", setAutoscaler).Of(foos)},
		{ChildKind: configMaps.Of(foos), updates: anyType([]attempt[*corev1.ConfigMap]{
			{"a file of others", func(config *corev1.ConfigMap) { config.BinaryData = map[string][]byte{"other": {1}} },
				"may change only server.name in the binaryData"},
			{"a file in the way", func(config *corev1.ConfigMap) { config.BinaryData = map[string][]byte{"server.name": {1}} },
				"may set the binaryData.server.name"},
			{"a text of others", func(config *corev1.ConfigMap) { config.Data["other"] = "x" }, "in the data"},
		}...)},
	}
}

// rowOf returns a row for children under the Foo's name.
func rowOf[T plan.Object](kind string, set func(child T, foo *samplev1alpha1.Foo)) plan.Row[*samplev1alpha1.Foo, T] {
	return plan.Row[*samplev1alpha1.Foo, T]{
		Kind:     kind,
		Name:     func(foo *samplev1alpha1.Foo) string { return foo.Name },
		SetOwned: func(child T, foo *samplev1alpha1.Foo, _ *plan.View) { set(child, foo) },
	}
}

// setService owns a map, and two fields of each element of a list, one of which is its name.
func setService(service *corev1.Service, foo *samplev1alpha1.Foo) {
	service.Spec.Selector = map[string]string{"app": "nginx", "controller": foo.Name}
	if len(service.Spec.Ports) != 1 {
		service.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("web")}}
	}
	service.Spec.Ports[0].Name, service.Spec.Ports[0].Port = "http", 80
}

// setIngress owns fields of the elements of a list within those of another list.
func setIngress(ingress *networkingv1.Ingress, foo *samplev1alpha1.Foo) {
	if len(ingress.Spec.Rules) != 1 {
		ingress.Spec.Rules = make([]networkingv1.IngressRule, 1)
	}
	rule := &ingress.Spec.Rules[0]
	rule.Host = foo.Name + ".example.com"
	if rule.HTTP == nil || len(rule.HTTP.Paths) != 1 {
		rule.HTTP = &networkingv1.HTTPIngressRuleValue{Paths: make([]networkingv1.HTTPIngressPath, 1)}
	}
	path := &rule.HTTP.Paths[0]
	path.Path, path.PathType = "/", new(networkingv1.PathTypePrefix)
	port := networkingv1.ServiceBackendPort{Number: 80}
	path.Backend.Service = &networkingv1.IngressServiceBackend{Name: foo.Name, Port: port}
}

// setBudget replaces a struct, and clears a field that no new child has.
func setBudget(budget *policyv1.PodDisruptionBudget, foo *samplev1alpha1.Foo) {
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx", "controller": foo.Name}}
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = new(intstr.FromInt32(1)), nil
}

// setAutoscaler replaces a list, and owns numbers and names that depend on the Foo's spec.
func setAutoscaler(autoscaler *autoscalingv2.HorizontalPodAutoscaler, foo *samplev1alpha1.Foo) {
	spec := &autoscaler.Spec
	spec.ScaleTargetRef.APIVersion, spec.ScaleTargetRef.Kind = "apps/v1", "Deployment"
	spec.ScaleTargetRef.Name = foo.Spec.DeploymentName
	spec.MaxReplicas = 10
	if foo.Spec.Replicas != nil {
		spec.MaxReplicas = *foo.Spec.Replicas
	}
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))}
	spec.Metrics = []autoscalingv2.MetricSpec{{
		Type:     autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: target},
	}}
}

// setConfigMap owns three keys of a map: one is the same for all Foos, one has the Foo's
// name in it, and one depends on the spec. It removes a key from another map.
func setConfigMap(config *corev1.ConfigMap, foo *samplev1alpha1.Foo) {
	if config.Data == nil {
		config.Data = map[string]string{}
	}
	config.Data["mode"] = "it's \"plain\"\n"
	config.Data["server.name"] = "web." + foo.Name + ".example.com"
	config.Data["deployment"] = foo.Spec.DeploymentName
	delete(config.BinaryData, "server.name") // a key can't be in both
}
