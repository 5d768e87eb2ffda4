// SPDX-License-Identifier: Apache-2.0

// The policies. They run in the API server, before the schema and the rules are checked.

package shape

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// SyncPolicyName is the name of the policy that keeps the versions equal, and of its binding.
func (d *Declaration) SyncPolicyName() string { return d.Resource() + "." + d.Group() + "-versions" }

// SyncPolicy returns the policy that keeps the fields of both versions equal. What a
// client does not give is not said: a client of one version knows no field of the other.
// So the policy never clears a field.
//
//	given             changed since the stored object     then
//	one side          that side, or nothing was stored    the other side is converted
//	one side          nothing                             the other side stays as it is stored
//	both, which differ   one of them                      the other side is converted
//	both, which differ   both or none                     nothing: the rules refuse the object
//	neither                                               the defaults, if there are any
func (d *Declaration) SyncPolicy() *admissionregistrationv1.MutatingAdmissionPolicy {
	spec := admissionregistrationv1.MutatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		// Another policy that changes one side runs before this one or after it.
		ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
		MatchConstraints: &admissionregistrationv1.MatchResources{
			MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{d.Group()}, APIVersions: []string{"*"}, Resources: []string{d.Resource()},
				},
			}}},
		},
	}
	for i := range d.Changes {
		s := synced{&d.Changes[i], fmt.Sprintf("c%d_", i)}
		spec.Variables = append(spec.Variables, s.variables()...)
		spec.Mutations = append(spec.Mutations, admissionregistrationv1.Mutation{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch,
			JSONPatch: &admissionregistrationv1.JSONPatch{Expression: s.patch()},
		})
	}
	return &admissionregistrationv1.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: d.SyncPolicyName()},
		Spec:       spec,
	}
}

// Binding returns the binding of a policy, which applies it to the whole cluster.
func Binding(policy *admissionregistrationv1.MutatingAdmissionPolicy) *admissionregistrationv1.MutatingAdmissionPolicyBinding {
	return &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: policy.APIVersion, Kind: policy.Kind + "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
}

// synced writes the expressions for one change, whose variables have a prefix.
type synced struct {
	*Change

	prefix string
}

// variable returns a variable of the change.
func (s synced) variable(name string) string { return "variables." + s.prefix + name }

// now and was return a field's optional value, in the object and in the stored one.
func (s synced) now(path string) string { return s.variable("now" + s.number(path)) }
func (s synced) was(path string) string { return s.variable("was" + s.number(path)) }

func (s synced) number(path string) string { return strconv.Itoa(slices.Index(s.fields(), path)) }
func (s synced) value(path string) string  { return s.now(path) + ".value()" }
func (s synced) stored(path string) string { return s.was(path) + ".value()" }

// literal returns the default of a field in CEL, which is a superset of JSON.
func (s synced) literal(path string) string {
	text, _ := json.Marshal(s.Default[path]) // it was read as JSON
	return string(text)
}

// variables returns the fields' values, and what is known about each side.
func (s synced) variables() (variables []admissionregistrationv1.Variable) {
	add := func(name, expression string) {
		name = strings.TrimPrefix(name, "variables.")
		variables = append(variables, admissionregistrationv1.Variable{Name: name, Expression: expression})
	}
	typed := []string{"true"}
	types := slices.Concat(forms[s.Form].from, forms[s.Form].to)
	for i, path := range s.fields() {
		add(s.now(path), read("object", path))
		add(s.was(path), "oldObject == null ? optional.none() : "+read("oldObject", path))
		if types[i] != anyType {
			isType := fmt.Sprintf("type(%s) == %s", s.value(path), celTypes[types[i]])
			typed = append(typed, fmt.Sprintf("(!%s.hasValue() || %s)", s.now(path), isType))
		}
	}
	add(s.variable("typed"), strings.Join(typed, " && "))
	for i, paths := range [][]string{s.From, s.To} {
		side := [...]string{"old", "new"}[i]
		add(s.variable("has_"+side), s.given(paths, s.now))
		add(s.variable("had_"+side), s.given(paths, s.was))
		add(s.variable("same_"+side), all(paths, func(path string) string { return s.now(path) + " == " + s.was(path) }))
	}
	return variables
}

// patch returns the expression for the patch.
func (s synced) patch() string {
	c := s.cel()
	convert := func(valid string, paths, expressions []string) string {
		patch := set(paths, s.fillAll(expressions, s.value))
		return fmt.Sprintf("(%s ? %s : [])", cmp.Or(s.fill(valid, s.value), "true"), patch)
	}
	forward, backward := convert(c.validOld, s.To, c.forward), convert(c.validNew, s.From, c.backward)
	neither := "[]"
	if len(s.Default) > 0 {
		neither = fmt.Sprintf("object.?spec.hasValue() && (%s) ? %s + %s : []", cmp.Or(s.fill(c.validOld, s.literal), "true"),
			set(s.From, each(s.From, s.literal)), set(s.To, s.fillAll(c.forward, s.literal)))
	}
	hasOld, sameOld := s.variable("has_old"), s.variable("same_old")
	hasNew, sameNew := s.variable("has_new"), s.variable("same_new")
	stored := s.variable("had_old") + " && " + s.variable("had_new")
	return strings.Join([]string{
		"!" + s.variable("typed") + " ? []", // the schema refuses it
		fmt.Sprintf("!%s && !%s ? (%s)", hasOld, hasNew, neither),
		fmt.Sprintf("!%s ? (%s && %s ? %s : %s)", hasNew, stored, sameOld, set(s.To, each(s.To, s.stored)), forward),
		fmt.Sprintf("!%s ? (%s && %s ? %s : %s)", hasOld, stored, sameNew, set(s.From, each(s.From, s.stored)), backward),
		s.fill("("+c.agree+")", s.value) + " ? []",
		fmt.Sprintf("%s && !%s ? %s", sameNew, sameOld, forward),
		fmt.Sprintf("%s && !%s ? %s", sameOld, sameNew, backward),
		"[]",
	}, " :\n")
}

// set returns the patch that sets fields, and their parents before.
func set(paths, values []string) string {
	var parents, operations []string
	add := func(steps []string, value string) string {
		return fmt.Sprintf("JSONPatch{op: 'add', path: '/%s', value: %s}", strings.Join(steps, "/"), value)
	}
	for i, path := range paths {
		steps := strings.Split(path, ".")
		for j := 2; j < len(steps); j++ {
			parents = append(parents, fmt.Sprintf("(%s.hasValue() ? [] : [%s]) + ", read("object", strings.Join(steps[:j], ".")), add(steps[:j], "{}")))
		}
		operations = append(operations, add(steps, values[i]))
	}
	return strings.Join(parents, "") + "[" + strings.Join(operations, ", ") + "]"
}
