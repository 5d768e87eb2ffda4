// SPDX-License-Identifier: Apache-2.0

// The rules of the CustomResourceDefinition: what the policy can't make right is refused.

package shape

import (
	"fmt"
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// slot matches the name of a field in an expression: $o0 is the first old one.
var slot = regexp.MustCompile(`\$[on]\d`)

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

func (c *Change) fillAll(expressions []string, name func(path string) string) []string {
	return each(expressions, func(expression string) string { return c.fill(expression, name) })
}

func each(texts []string, do func(string) string) []string {
	done := make([]string, len(texts))
	for i, text := range texts {
		done[i] = do(text)
	}
	return done
}

func all(paths []string, condition func(path string) string) string {
	return strings.Join(each(paths, condition), " && ")
}

// read returns the optional value of a field.
func read(object, path string) string {
	return object + ".?" + strings.ReplaceAll(path, ".", ".?")
}

// self returns a field in a rule of the spec, and optional and was its optional value, in the
// object and in the stored one.
func self(path string) string     { return "self" + strings.TrimPrefix(path, "spec") }
func optional(path string) string { return read("self", strings.TrimPrefix(path, "spec.")) }
func was(path string) string      { return read("oldSelf", strings.TrimPrefix(path, "spec.")) }

// given returns the condition that one side of a change is given, with the optional values of
// its fields.
func (c *Change) given(paths []string, value func(path string) string) string {
	return all(paths, func(path string) string {
		if c.cel().emptyIsAbsent {
			return fmt.Sprintf("%s.hasValue() && size(%[1]s.value()) > 0", value(path))
		}
		return value(path) + ".hasValue()"
	})
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
	older, newer := "("+c.given(c.From, optional)+")", "("+c.given(c.To, optional)+")"
	conversion := c.cel()
	add := func(message, rule string) {
		rules = append(rules, apiextensionsv1.ValidationRule{Rule: rule, Message: message})
	}
	// says returns a condition about the fields, which holds, too, if one of them is not given.
	says := func(given, condition string) string { return "!" + given + " || " + c.fill("("+condition+")", self) }
	for _, side := range [][]string{c.From, c.To} {
		for _, path := range side[1:] {
			rule := optional(side[0]) + ".hasValue() == " + optional(path) + ".hasValue()"
			add(strings.Join(side, " and ")+" must be given together", rule)
		}
	}
	if stage >= Dropped {
		if required {
			add(strings.Join(c.To, " and ")+" is required", newer)
		}
		return rules
	}
	cant := func(from, to []string) string {
		return strings.Join(from, ", ") + " can't be converted to " + strings.Join(to, ", ")
	}
	if conversion.validOld != "" {
		// What was stored before the rule stays writable: labels, finalizers.
		unchanged := all(c.From, func(path string) string {
			return was(path) + ".hasValue() && " + was(path) + ".value() == " + self(path)
		})
		add(cant(c.From, c.To), says(older, conversion.validOld)+" || (oldSelf.hasValue() && "+unchanged+")")
		rules[len(rules)-1].OptionalOldSelf = new(true)
	}
	if conversion.validNew != "" {
		add(cant(c.To, c.From), says(newer, conversion.validNew))
	}
	both := "(" + older + " && " + newer + ")"
	switch agree := says(both, conversion.agree); {
	case stage >= Strict && required:
		add(c.strictMessage(), both+" && "+c.fill("("+conversion.agree+")", self))
	case stage >= Strict:
		add(c.strictMessage(), fmt.Sprintf("%s == %s && (%s)", older, newer, agree))
	default:
		if required {
			add(c.names()+": one of them is required", older+" || "+newer)
		}
		add(c.names()+" must say the same: give only one of them", agree)
	}
	if c.Lossy == Refuse {
		add(fmt.Sprintf("%s can't express this value of %s yet: %s", c.From[0], c.To[0], forms[c.Form].loses), says(both, conversion.exact))
	}
	return rules
}
