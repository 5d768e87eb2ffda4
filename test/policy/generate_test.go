// SPDX-License-Identifier: Apache-2.0

// The policies of further kinds are generated: from the rows of internal/plan, and from
// the items of the policy for Deployments that judge nothing but metadata.

package policy

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/randfill"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

var update = flag.Bool("update", false, "write the generated policies")

// chosen are the fields that the API server sets beside its defaults, before it asks the
// policy: [*] stands for each element of a list.
var chosen = map[schema.GroupResource][]string{
	{Resource: "services"}: {"spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy", "spec.ports.[*].nodePort"},
}

// With -update, the test writes the policies. A kind that has a policy of its own, written
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
			must(t, os.WriteFile(file, []byte(text), 0o644))
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
	must(t, err)
	first := "- " + filepath.Base(byHand) + "\n"
	if line := "- " + file + "\n"; !strings.Contains(string(text), line) {
		must(t, os.WriteFile(list, []byte(strings.Replace(string(text), first, first+line, 1)), 0o644))
	}
}

// policy returns the text of the generated policy.
func (r *row) policy(t *testing.T) string {
	t.Helper()
	foo := r.wanting()[0]
	asked := r.Desired(foo, r.seenBy(foo))
	if len(asked.GetLabels())+len(asked.GetAnnotations())+len(asked.GetFinalizers()) > 0 || r.ownedPart(t).fields["metadata"] != nil {
		t.Fatalf("the row of the %s sets labels, annotations or finalizers of the child itself, which no generated policy allows: write the policy by hand", r.Kind)
	}
	own := &rules{kind: r.Kind, aKind: article(r.Kind) + " " + r.Kind}
	own.write(r.pattern(t), r.ownedPart(t))
	text, err := os.ReadFile(byHand)
	must(t, err)
	policy, err := assemble(string(text), own, r.resource(t))
	must(t, err)
	return policy
}

// pattern returns what the new children of all Foos have in common.
func (r *row) pattern(t *testing.T) *pattern {
	t.Helper()
	var names []string
	var values []any
	for _, foo := range append(r.wanting(), r.various(t)...) {
		fields := fieldsOf(t, stored[object](t, r.Desired(foo, r.seenBy(foo))))
		delete(fields, "metadata")
		delete(fields, "status")
		values, names = append(values, fields), append(names, foo.GetName())
	}
	p := patternOf(values, names)
	for _, path := range chosen[r.resource(t).GroupResource()] {
		p.chosen(strings.Split(path, ".")...)
	}
	return p
}

// various returns Foos with random specs that ask for a child of the kind.
func (r *row) various(t *testing.T) (all []plan.Owner) {
	t.Helper()
	for seed := range int64(20) {
		foo := r.newFoo(fmt.Sprintf("various-%d", seed), 0)
		randfill.NewWithSeed(seed).NilChance(.2).NumElements(1, 2).Funcs(fillQuantity).Fill(foo.GetSpec())
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
		seen := r.seenBy(foo)
		asked := fieldsOf(t, stored[object](t, r.Desired(foo, seen)))
		for seed := range uint64(200) {
			child := r.random(t, foo, seed, .5)
			after := child.DeepCopyObject().(object)
			r.SetOwned(after, foo, seen)
			owned.observe(reflect.TypeOf(child), fieldsOf(t, child), fieldsOf(t, stored(t, after)), asked)
		}
	}
	owned.loosen(r.pattern(t))
	r.owned = owned
	return owned
}

// generatedFor are rows for which no policy is shipped.
func generatedFor() []*row {
	foos := plan.Foos(shippedImage)
	return []*row{
		{ChildKind: foos.Children[0], plausible: deployments.plausible, others: deployments.others},
		{ChildKind: serviceRow().Of(foos)},
		{ChildKind: configMapRow().Of(foos), updates: anyType([]attempt[*corev1.ConfigMap]{
			{"a file of others", func(config *corev1.ConfigMap) { config.BinaryData = map[string][]byte{"other": {1}} }, "may change only server.name in the binaryData"},
			{"a file in the way", func(config *corev1.ConfigMap) { config.BinaryData = map[string][]byte{"server.name": {1}} }, "may set the binaryData.server.name"},
			{"a text of others", func(config *corev1.ConfigMap) { config.Data["other"] = "x" }, "in the data"},
		}...)},
	}
}

// serviceRow owns a map, and a field of each element of a list.
func serviceRow() plan.Row[*samplev1alpha1.Foo, *corev1.Service] {
	return plan.Row[*samplev1alpha1.Foo, *corev1.Service]{
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
func configMapRow() plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap] {
	return plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]{
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

// ownedBy returns a Foo's child as one of a kind.
func ownedBy(owner *footest.OwnerRow, child object) object {
	if child == nil || owner == footest.FooOwner {
		return child
	}
	child = child.DeepCopyObject().(object)
	refs := child.GetOwnerReferences()
	for i := range refs {
		refs[i].Kind = inWordsOf(owner, refs[i].Kind)
	}
	child.SetOwnerReferences(refs)
	return child
}

// ofFoos returns an answer about a kind as one about Foos.
func ofFoos(owner *footest.OwnerRow, answer error) error {
	if answer == nil || owner == footest.FooOwner {
		return answer
	}
	return errors.New(strings.ReplaceAll(answer.Error(), owner.Kind.Kind, footest.FooKind.Kind))
}

// A refusal is in the words of the kind.
func TestOtherOwnersAreTranslated(t *testing.T) {
	other := &footest.OwnerRow{Kind: &footest.Kind{}}
	other.Kind.Kind, other.Resource.Resource = "HTTPMouse", "httpmice"
	child := &metav1.PartialObjectMetadata{}
	child.SetOwnerReferences([]metav1.OwnerReference{ownerRef("Foo", "foo"), ownerRef("ConfigMap", "other")})
	refs := ownedBy(other, child).GetOwnerReferences()
	if refs[0].Kind != "HTTPMouse" || refs[1].Kind != "ConfigMap" || child.OwnerReferences[0].Kind != "Foo" {
		t.Errorf("the owners are %v, of the Foo's child %v", refs, child.OwnerReferences)
	}
	if got := inWordsOf(other, "Foos, wasAFoos, a Foo"); got != "HTTPMice, wasAFoos, a HTTPMouse" {
		t.Errorf("the text is %q", got)
	}
	if got := ofFoos(other, errors.New("only for a HTTPMouse")); got.Error() != "only for a Foo" {
		t.Errorf("the answer is %q", got)
	}
}
