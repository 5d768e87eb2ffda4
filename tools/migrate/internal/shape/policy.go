// SPDX-License-Identifier: Apache-2.0

// The policies. They run in the API server, before the schema and the rules are checked.

package shape

import (
	"cmp"
	"encoding/json"
	"fmt"
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
	policy := d.policy(d.SyncPolicyName(), admissionregistrationv1.Create, admissionregistrationv1.Update)
	// Another policy that changes one side runs before this one or after it.
	policy.Spec.ReinvocationPolicy = admissionregistrationv1.IfNeededReinvocationPolicy
	for i := range d.Changes {
		s := side{&d.Changes[i], fmt.Sprintf("c%d", i)}
		policy.Spec.Variables = append(policy.Spec.Variables, s.variables()...)
		policy.Spec.Mutations = append(policy.Spec.Mutations, jsonPatch(s.patch()))
	}
	return policy
}

// Binding returns the binding of a policy, which applies it to the whole cluster.
func Binding(policy *admissionregistrationv1.MutatingAdmissionPolicy) *admissionregistrationv1.MutatingAdmissionPolicyBinding {
	return &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: policy.APIVersion, Kind: policy.Kind + "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
}

func (d *Declaration) policy(name string, operations ...admissionregistrationv1.OperationType) *admissionregistrationv1.MutatingAdmissionPolicy {
	return &admissionregistrationv1.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      ptr.To(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: operations,
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{d.Group()}, APIVersions: []string{"*"}, Resources: []string{d.Resource()},
					},
				}}},
			},
		},
	}
}

func jsonPatch(expression string) admissionregistrationv1.Mutation {
	return admissionregistrationv1.Mutation{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch,
		JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
	}
}

// side writes the expressions for one change, whose variables have a prefix.
type side struct {
	*Change
	prefix string
}

// read returns the optional value of a field.
func read(object, path string) string {
	return object + ".?" + strings.ReplaceAll(path, ".", ".?")
}

func (s side) name(kind string, number int) string {
	return fmt.Sprintf("%s_%s%d", s.prefix, kind, number)
}

// variables returns the fields' values, in the object and in the stored one, and what is
// to be done.
func (s side) variables() (variables []admissionregistrationv1.Variable) {
	add := func(name, expression string) {
		variables = append(variables, admissionregistrationv1.Variable{Name: name, Expression: expression})
	}
	for _, of := range []struct {
		letter string
		paths  []string
	}{{"o", s.From}, {"n", s.To}} {
		var has, had, same []string
		for i, path := range of.paths {
			now, was := "variables."+s.name(of.letter, i), "variables."+s.name(of.letter+"was", i)
			add(s.name(of.letter, i), read("object", path))
			add(s.name(of.letter+"was", i), "oldObject == null ? optional.none() : "+read("oldObject", path))
			filled := func(value string) string {
				if s.cel().emptyIsAbsent {
					return value + ".hasValue() && size(" + value + ".value()) > 0"
				}
				return value + ".hasValue()"
			}
			has, had = append(has, filled(now)), append(had, filled(was))
			same = append(same, now+" == "+was)
		}
		add(s.prefix+"_has_"+of.letter, strings.Join(has, " && "))
		add(s.prefix+"_had_"+of.letter, strings.Join(had, " && "))
		add(s.prefix+"_same_"+of.letter, strings.Join(same, " && "))
	}
	typed := []string{"true"}
	for i, want := range s.cel().types {
		value := "variables." + s.name("o", i)
		if i >= len(s.From) {
			value = "variables." + s.name("n", i-len(s.From))
		}
		typed = append(typed, fmt.Sprintf("(!%s.hasValue() || type(%[1]s.value()) == %s)", value, want))
	}
	add(s.prefix+"_typed", strings.Join(typed, " && "))
	add(s.prefix+"_do", s.decision())
	return variables
}

// decision returns the expression for what is to be done.
func (s side) decision() string {
	v := func(name string) string { return "variables." + s.prefix + "_" + name }
	c := s.cel()
	convert := func(valid, to string) string {
		if valid == "" {
			return "'" + to + "'"
		}
		return fmt.Sprintf("(%s ? '%s' : '')", s.value(valid), to)
	}
	forward, backward := convert(c.validOld, "forward"), convert(c.validNew, "backward")
	stored := v("had_o") + " && " + v("had_n")
	neither := "''"
	if len(s.Default) > 0 {
		neither = fmt.Sprintf("object.?spec.hasValue() && (%s) ? 'default' : ''", cmp.Or(s.fill(c.validOld, s.literal), "true"))
	}
	return strings.Join([]string{
		"!" + v("typed") + " ? ''", // the schema refuses it
		fmt.Sprintf("!%s && !%s ? (%s)", v("has_o"), v("has_n"), neither),
		fmt.Sprintf("!%s ? (%s && %s ? 'keepNew' : %s)", v("has_n"), stored, v("same_o"), forward),
		fmt.Sprintf("!%s ? (%s && %s ? 'keepOld' : %s)", v("has_o"), stored, v("same_n"), backward),
		s.value("("+c.agree+")") + " ? ''",
		fmt.Sprintf("%s && !%s ? %s", v("same_n"), v("same_o"), forward),
		fmt.Sprintf("%s && !%s ? %s", v("same_o"), v("same_n"), backward),
		"''",
	}, " :\n")
}

// value fills an expression with the fields' values.
func (s side) value(expression string) string {
	return slot.ReplaceAllString(expression, "variables."+s.prefix+"_${1}${2}.value()")
}

// patch returns the expression for the patch.
func (s side) patch() string {
	c := s.cel()
	var was, wasNew, forward, backward, olds, defaults []string
	for i := range s.From {
		was = append(was, "variables."+s.name("owas", i)+".value()")
		backward = append(backward, s.value(c.backward[i]))
		olds = append(olds, s.literal(s.From[i]))
	}
	for i := range s.To {
		wasNew = append(wasNew, "variables."+s.name("nwas", i)+".value()")
		forward = append(forward, s.value(c.forward[i]))
		defaults = append(defaults, s.fill(c.forward[i], s.literal))
	}
	do := func(what string) string { return "variables." + s.prefix + "_do == '" + what + "' ? " }
	cases := []string{
		do("forward") + set(s.To, forward),
		do("backward") + set(s.From, backward),
		do("keepNew") + set(s.To, wasNew),
		do("keepOld") + set(s.From, was),
	}
	if len(s.Default) > 0 {
		cases = append(cases, do("default")+set(s.From, olds)+" + "+set(s.To, defaults))
	}
	return strings.Join(append(cases, "[]"), " :\n")
}

// literal returns the default of a field in CEL, which is a superset of JSON.
func (s side) literal(path string) string {
	text, _ := json.Marshal(s.Default[path]) // it was read as JSON
	return string(text)
}

// set returns the patch that sets fields, and their parents before.
func set(paths, values []string) string {
	var parents, operations []string
	for i, path := range paths {
		steps := strings.Split(path, ".")
		for j := 2; j < len(steps); j++ {
			parents = append(parents, fmt.Sprintf("(%s.hasValue() ? [] : [%s]) + ", read("object", strings.Join(steps[:j], ".")), operation("add", steps[:j], "{}")))
		}
		operations = append(operations, operation("add", steps, values[i]))
	}
	return strings.Join(parents, "") + "[" + strings.Join(operations, ", ") + "]"
}

func operation(op string, steps []string, value string) string {
	return fmt.Sprintf("JSONPatch{op: '%s', path: '/%s', value: %s}", op, strings.Join(steps, "/"), value)
}
