// SPDX-License-Identifier: Apache-2.0

// The generated policies: the rules of a kind about owned fields, made from its row, in the words of
// the kind, and the text, which takes the rest of the policy that is written by hand.

package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/test/footest"
)

// rules writes the items of a policy for a kind.
type rules struct {
	kind, aKind string
	owner       *footest.OwnerRow
	variable    string
	validations strings.Builder
}

// othersFields are those of an object that other rules judge, or that an update of it
// can't set.
const othersFields = "'apiVersion', 'kind', 'metadata', 'status'"

// write writes the rules for a kind whose new children have a pattern, and of which a row
// owns a part.
func (r *rules) write(asked *pattern, owned *part) {
	expression := asked.expression("dyn(object)", "      ")
	if strings.ContainsAny(expression, "\n\"") {
		expression = ">-\n      " + expression
	} else {
		expression = `"` + expression + `"`
	}
	r.variable = "  # The " + r.kind + " that a Foo wants, with the API server's defaults. What is not the same for all\n" +
		"  # Foos, and what the API server chooses, is as in the object: a policy can't know it.\n" +
		"  - name: asked\n    expression: " + expression + "\n"
	r.validation("request.operation != 'CREATE' ||\n"+
		"      (dyn(object).all(k, k in ["+othersFields+"] || k in variables.asked) &&\n"+
		"       variables.asked.all(k, k in dyn(object) && dyn(object)[k] == variables.asked[k]))",
		"may create "+r.aKind+" only as a Foo specifies it, without additional settings")
	for _, c := range r.conditions(owned, nil, "dyn(object)", "dyn(oldObject)", "variables.asked") {
		r.validation("request.operation != 'UPDATE' ||\n      ("+c.expression+")", c.message)
	}
}

// condition is one for an update.
type condition struct{ expression, message string }

// conditions returns those for an update of an object or a map at a path. now, before and asked
// are expressions for it in the new and the old object, and for what a Foo asks for.
func (r *rules) conditions(owned *part, path []string, now, before, asked string) (all []condition) {
	add := func(expression string, message ...string) {
		all = append(all, condition{expression, strings.Join(message, " ")})
	}
	keys := slices.Sorted(maps.Keys(owned.fields))
	free, within := quoted(keys), "of "+r.aKind
	if len(path) == 0 {
		free = strings.Trim(free+", 'metadata', 'status'", ", ")
	} else {
		within = "in the " + strings.Join(path, ".") + " " + within
	}
	add(unchanged(free, now, before), "may change only", enumerate(keys), within)
	for _, key := range keys {
		inner, path := owned.fields[key], append(slices.Clip(path), key)
		at, now, before, asked := strings.Join(path, "."), now+optional(key), before+optional(key), asked+optional(key)
		names := slices.Sorted(maps.Keys(inner.named))
		switch {
		case inner.isWhole() && inner.free: // any value
		case inner.isWhole():
			add(isAsked(now, before, asked), "may set the", at, "of", r.aKind, "only to what a Foo specifies")
		case inner.fields != nil:
			all = append(all, r.conditions(inner, path, now+".orValue({})", before+".orValue({})", asked)...)
		case inner.each != nil:
			add(r.sameEach(inner, inner.elementsAt(now), inner.elementsAt(before), asked+".orValue([])"),
				"may change the", at, "of", r.aKind, "only as a Foo specifies it")
		default:
			now, before := inner.elementsAt(now), inner.elementsAt(before)
			add(sameOthers(names, now, before), "may change only", enumerate(names), "in the", at, "of", r.aKind)
			for _, name := range names {
				add(r.sameNamed(inner.named[name], name, now, before, asked+".orValue([])"),
					"may change the", name, "in the", at, "of", r.aKind, "only as a Foo specifies it")
			}
		}
	}
	return all
}

// same writes that an object or map is unchanged except for what is owned, and that this
// is unchanged or as desired, an expression for an optional value.
func (r *rules) same(owned *part, now, before, asked string) string {
	if owned == nil || owned.fields == nil {
		return now + " == " + before
	}
	var texts []string
	for _, c := range r.conditions(owned, []string{""}, now, before, asked) {
		texts = append(texts, c.expression)
	}
	return strings.Join(texts, " &&\n       ")
}

// sameEach writes that each element of a list is one of before, except for what is owned.
// Within an element, e and b are those of an inner list.
func (r *rules) sameEach(owned *part, now, before, asked string) string {
	isAsked := "false"
	if owned.replaced {
		isAsked = now + " == " + asked
	}
	return fmt.Sprintf("(%s.size() == %s.size()\n       ? %[1]s.all(e, %[2]s.exists(b,\n         %s))\n       : %s)",
		now, before, r.same(owned.each, "e", "b", asked+"[?0]"), isAsked)
}

// sameOthers writes that all elements but those of some names are unchanged.
func sameOthers(names []string, now, before string) string {
	isOther := "e.?name.orValue('') in [" + quoted(names) + "]"
	return fmt.Sprintf("(%s.all(e, %s || e in %s) &&\n       %[3]s.all(e, %[2]s || e in %[1]s))", now, isOther, before)
}

// sameNamed writes that the element of a name is unchanged except for what is owned. One is
// required: no one may remove it, or add another one of the name. One that is added may lack
// what its own child gives it.
func (r *rules) sameNamed(owned *part, name, now, before, asked string) string {
	is := func(element string) string { return element + ".?name.orValue('') == " + quote(name) }
	made := fmt.Sprintf("%s.filter(a, %s)", asked, is("a"))
	return "(" +
		now + ".exists_one(e, " + is("e") + ") &&\n       " +
		now + ".filter(e, " + is("e") + ").all(e,\n         " + before + ".exists(b, " + is("b") + ")\n" +
		"         ? " + before + ".exists(b, " + is("b") + " &&\n         " + r.same(owned, "e", "b", made+"[?0]") + ")\n" +
		"         : " + made + ".exists(a, e.all(k, k in a && e[k] == a[k]))))"
}

// elementsAt writes a list, from an expression for its optional value.
func (p *part) elementsAt(list string) string {
	if p.null {
		return "optional.ofNonZeroValue(" + list + ".orValue([])).orValue([])"
	}
	return list + ".orValue([])"
}

// unchanged writes that all fields except free ones are unchanged.
func unchanged(free, now, before string) string {
	return fmt.Sprintf("%[2]s.all(k, k in [%[1]s] || (k in %[3]s && %[2]s[k] == %[3]s[k])) &&\n       %[3]s.all(k, k in [%[1]s] || k in %[2]s)", free, now, before)
}

func isAsked(now, before, asked string) string {
	return fmt.Sprintf("(%s == %s ||\n       %[1]s == %[3]s)", now, before, asked)
}

func quoted(keys []string) string {
	var texts []string
	for _, key := range keys {
		texts = append(texts, quote(key))
	}
	return strings.Join(texts, ", ")
}

// enumerate returns words as a, b and c.
func enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func (r *rules) validation(expression, message string) {
	fmt.Fprintf(&r.validations, "  - expression: >-\n      %s\n    message: \"%s %s\"\n    reason: Forbidden\n", expression, program, message)
}

// inWordsOf returns a text about Foos as one about a kind.
func inWordsOf(owner *footest.OwnerRow, text string) string {
	return strings.NewReplacer("Foos", plural(owner.Kind.Kind, owner.Resource.Resource), "Foo", owner.Kind.Kind).Replace(text)
}

// plural returns the plural of a kind, such as HTTPMice for HTTPMouse, by its resource.
func plural(kind, resource string) string {
	same := 0
	for same < min(len(kind), len(resource)) && strings.ToLower(kind)[same] == resource[same] {
		same++
	}
	return kind[:same] + resource[same:]
}

const (
	permissions = "../../artifacts/deploy/permissions"
	program     = "sample-controller"
	// byHand is the policy that is written by hand.
	byHand = permissions + "/admission-policy.yaml"
	// list is kustomize's list of the files.
	list = permissions + "/kustomization.yaml"
	// generated is the first line of a generated policy.
	generated = "# Generated by make update-policy. DO NOT EDIT."
)

// What changes in the head of a policy.
var (
	nameAt     = regexp.MustCompile(`(?m)^  (name|policyName): (.*)$`)
	groupsAt   = regexp.MustCompile(`(?m)^    - apiGroups: .*$`)
	resourceAt = regexp.MustCompile(`(?m)^      resources: .*$`)
)

// assemble returns the policy for a resource: the head of the one that is written by hand,
// its items about metadata, and the rules of the row.
func assemble(text string, own *rules, of schema.GroupVersionResource) (string, error) {
	_, text, _ = strings.Cut(text, "\napiVersion:")
	head, text, _ := strings.Cut(text, "  # The image.\n")
	image, text, _ := strings.Cut(text, "  # The spec.\n")
	_, text, _ = strings.Cut(text, "  validations:\n")
	validations, text, _ := strings.Cut(text, "  # The spec.\n")
	_, binding, found := strings.Cut(text, "---\n")
	if !found {
		return "", fmt.Errorf("%s is not a policy and its binding, with comments that begin the parts", byHand)
	}
	if strings.Contains(own.variable, imageVariable) {
		head += image
	}
	head = groupsAt.ReplaceAllString(head, fmt.Sprintf("    - apiGroups: [%q]", of.Group))
	head = resourceAt.ReplaceAllString(head, fmt.Sprintf("      resources: [%s]", of.Resource))
	all := generated + "\n" + own.introduction() + "apiVersion:" + own.reworded(head, of) + own.variable +
		"  validations:\n" + own.reworded(validations, of) + own.validations.String() + "---\n" + binding
	return inWordsOf(own.owner, nameAt.ReplaceAllString(all, "  $1: $2-"+of.Resource)), nil
}

// introduction is the comment at the head of a generated policy.
func (r *rules) introduction() string {
	return fmt.Sprintf(`# From the row of the %s in internal/kinds, and from the items of
# admission-policy.yaml about metadata. That file says what the rules are for.
#
# To write rules that the row does not contain, such as the range of a number, remove the
# first line: make update-policy then leaves this file alone, and the tests still compare
# it with the row.
`, r.kind)
}

// reworded returns the words about Deployments as words about the kind.
func (r *rules) reworded(text string, of schema.GroupVersionResource) string {
	return strings.NewReplacer("Deployments", plural(r.kind, of.Resource), "a Deployment", r.aKind,
		"A Deployment", strings.ToUpper(r.aKind[:1])+r.aKind[1:], "Deployment", r.kind, "its Pods", "what it owns").Replace(text)
}

// article returns the indefinite article of a kind.
func article(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIOU") {
		return "an"
	}
	return "a"
}
