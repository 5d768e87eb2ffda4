// SPDX-License-Identifier: Apache-2.0

// The rules of the CustomResourceDefinition: what the policy can't make right is refused.

package shape

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// slot matches the name of a field in an expression: $o0 is the first old one.
var slot = regexp.MustCompile(`\$([on])(\d)`)

// fill replaces the names of the fields in an expression.
func (c *Change) fill(expression string, name func(path string) string) string {
	return slot.ReplaceAllStringFunc(expression, func(match string) string {
		paths := c.From
		if match[1] == 'n' {
			paths = c.To
		}
		return name(paths[match[2]-'0'])
	})
}

// self returns a field in a rule of the spec.
func self(path string) string { return "self" + strings.TrimPrefix(path, "spec") }

// given returns the condition that an object has a field, in a rule of the spec.
func given(path string) string {
	var conditions []string
	for i := 2; i <= strings.Count(path, ".")+1; i++ {
		conditions = append(conditions, "has("+self(strings.Join(strings.Split(path, ".")[:i], "."))+")")
	}
	return strings.Join(conditions, " && ")
}

// present returns the condition that an object has one side of a change.
func (c *Change) present(paths []string) string {
	var conditions []string
	for _, path := range paths {
		conditions = append(conditions, given(path))
		if c.cel().emptyIsAbsent {
			conditions = append(conditions, "size("+self(path)+") > 0")
		}
	}
	return "(" + strings.Join(conditions, " && ") + ")"
}

func (c *Change) cel() conversion { return forms[c.Form].cel(c) }

// names returns both sides of a change for messages: "host (hostname)".
func (c *Change) names() string {
	short := func(paths []string) string {
		return strings.ReplaceAll(strings.Join(paths, ", "), "spec.", "")
	}
	return fmt.Sprintf("%s and %s", short(c.From), short(c.To))
}

func (c *Change) strictMessage() string {
	return c.names() + " must say the same, and be given together. Clients give one side, and the policy that adds the other is missing"
}

// rules returns the rules for a change in a stage.
func (c *Change) rules(stage Stage, required bool) (rules []apiextensionsv1.ValidationRule) {
	older, newer := c.present(c.From), c.present(c.To)
	conversion := c.cel()
	add := func(message, rule string) {
		rules = append(rules, apiextensionsv1.ValidationRule{Rule: rule, Message: message})
	}
	for _, side := range [][]string{c.From, c.To} {
		for _, path := range side[1:] {
			add(fmt.Sprintf("%s must be given together", strings.Join(side, " and ")), given(side[0])+" == ("+given(path)+")")
		}
	}
	agree := fmt.Sprintf("!(%s && %s) || %s", older, newer, c.fill("("+conversion.agree+")", self))
	switch {
	case stage >= Dropped:
		if required {
			add(strings.Join(c.To, " and ")+" is required", newer)
		}
		return rules
	case conversion.validOld != "":
		// What was stored before the rule stays writable: labels, finalizers.
		unchanged := []string{"oldSelf.hasValue()"}
		for _, path := range c.From {
			was := "oldSelf." + strings.TrimPrefix(read("", path), ".?spec.")
			unchanged = append(unchanged, was+".hasValue() && "+was+".value() == "+self(path))
		}
		rules = append(rules, apiextensionsv1.ValidationRule{
			Message:         fmt.Sprintf("%s can't be converted to %s", strings.Join(c.From, ", "), strings.Join(c.To, ", ")),
			Rule:            "!" + older + " || " + c.fill("("+conversion.validOld+")", self) + " || (" + strings.Join(unchanged, " && ") + ")",
			OptionalOldSelf: new(true),
		})
	}
	if conversion.validNew != "" {
		add(fmt.Sprintf("%s can't be converted to %s", strings.Join(c.To, ", "), strings.Join(c.From, ", ")), "!"+newer+" || "+c.fill("("+conversion.validNew+")", self))
	}
	switch {
	case stage >= Strict && required:
		add(c.strictMessage(), fmt.Sprintf("%s && %s && %s", older, newer, c.fill("("+conversion.agree+")", self)))
	case stage >= Strict:
		add(c.strictMessage(), fmt.Sprintf("%s == %s && (%s)", older, newer, agree))
	default:
		if required {
			add(c.names()+": one of them is required", older+" || "+newer)
		}
		add(c.names()+" must say the same: give only one of them", agree)
	}
	if c.Lossy == Refuse {
		add(fmt.Sprintf("%s can't express this value of %s yet: %s", c.From[0], c.To[0], forms[c.Form].loses),
			fmt.Sprintf("!(%s && %s) || %s", older, newer, c.fill("("+conversion.exact+")", self)))
	}
	return slices.Clip(rules)
}
