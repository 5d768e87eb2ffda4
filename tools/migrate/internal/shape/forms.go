// SPDX-License-Identifier: Apache-2.0

// The forms of a change: how the values of one version become those of the other, in CEL.

package shape

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// form is a way to convert values.
type form struct {
	// from and to are the fields' types in the schema; anyType stands for each.
	from, to []string
	// check returns an error if the change can't be inverted, or if its first fields, of these schemas,
	// can't be converted so. It may be nil.
	check func(c *Change, from, to *apiextensionsv1.JSONSchemaProps) error
	// cel returns the conversion.
	cel func(*Change) conversion
}

// conversion converts values in CEL. In the expressions, $o0 and $n0 are the values of the
// first old and new field.
type conversion struct {
	forward, backward []string // one expression for each field of the other side
	// validOld and validNew are conditions for forward and backward to be defined. Other
	// values are left to the schema and the rules, which refuse them. Empty means always.
	validOld, validNew string
	// agree tells whether both sides say the same. It costs less than a conversion.
	agree string
}

const anyType = ""

// celTypes are the types of the schema in CEL.
var celTypes = map[string]string{"string": "string", "integer": "int"}

var forms = map[string]form{
	"rename": {from: []string{anyType}, to: []string{anyType}, check: sameSchema, cel: func(*Change) conversion {
		return conversion{forward: []string{"$o0"}, backward: []string{"$n0"}, agree: "$o0 == $n0"}
	}},
	"split": {from: []string{"string"}, to: []string{"string", "integer"}, check: needsSeparator, cel: splitCEL},
	"enum":  {from: []string{anyType}, to: []string{anyType}, check: isBijection, cel: enumCEL},
}

func needsSeparator(c *Change, _, _ *apiextensionsv1.JSONSchemaProps) error {
	if len(c.Separator) != 1 || strings.ContainsAny(c.Separator, `'\0123456789`) {
		return fmt.Errorf("%s: needs a separator of one character, such as ':', and no digit", c.Form)
	}
	return nil
}

// splitCEL separates at the last separator, so that the first part may contain it, as an IPv6 address
// does. The second part is a number.
func splitCEL(c *Change) conversion {
	s := "'" + c.Separator + "'"
	at := "$o0.lastIndexOf(" + s + ")"
	first, second := "$o0.substring(0, "+at+")", "int($o0.substring("+at+" + 1))"
	return conversion{
		forward: []string{first, second}, backward: []string{"$n0 + " + s + " + string(dyn($n1))"},
		validOld: "$o0.matches(r'^.+" + regexp.QuoteMeta(c.Separator) + "[0-9]{1,9}$')",
		agree:    first + " == $n0 && " + second + " == $n1",
	}
}

// isBijection checks that each value of both schemas has one in the other.
func isBijection(c *Change, from, to *apiextensionsv1.JSONSchemaProps) error {
	values := map[string]string{}
	for old, value := range c.Values {
		if other, ok := values[value]; ok {
			return fmt.Errorf("enum: %q and %q would both be %q, so that the old value could not be found again: give each its own", min(old, other), max(old, other), value)
		}
		values[value] = old
	}
	if len(values) == 0 {
		return errors.New("enum: needs values: the new value for each old one")
	}
	olds, err := allowed(c.From[0], from)
	if err != nil {
		return err
	}
	news, err := allowed(c.To[0], to)
	if err != nil {
		return err
	}
	if missing := olds.SymmetricDifference(sets.KeySet(c.Values)).Union(news.SymmetricDifference(sets.KeySet(values))); len(missing) > 0 {
		return fmt.Errorf("enum: the values that the schemas of %s and %s allow are not those declared: %s", c.From[0], c.To[0], strings.Join(sets.List(missing), ", "))
	}
	return nil
}

func enumCEL(c *Change) conversion {
	var toNew, toOld []string
	for _, old := range sets.List(sets.KeySet(c.Values)) {
		toNew = append(toNew, enumKey(old)+": "+strconv.Quote(c.Values[old]))
		toOld = append(toOld, strconv.Quote(c.Values[old])+": "+enumKey(old))
	}
	forward, backward := "{"+strings.Join(toNew, ", ")+"}", "{"+strings.Join(toOld, ", ")+"}"
	return conversion{
		forward: []string{forward + "[$o0]"}, backward: []string{backward + "[$n0]"},
		validOld: "$o0 in " + forward, validNew: "$n0 in " + backward,
		agree: "$n0 in " + backward + " && " + backward + "[$n0] == $o0",
	}
}

// enumKey returns an old value as a CEL literal: a number, if it is one.
func enumKey(value string) string {
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return value
	}
	return strconv.Quote(value)
}

func sameSchema(c *Change, from, to *apiextensionsv1.JSONSchemaProps) error {
	return sameFields(c.From[0], c.To[0], from, to)
}

// allowed returns the values that a schema allows: an enum, or up to 100 numbers.
func allowed(path string, schema *apiextensionsv1.JSONSchemaProps) (sets.Set[string], error) {
	values := sets.New[string]()
	for _, value := range schema.Enum {
		values.Insert(strings.Trim(string(value.Raw), `"`))
	}
	if low, high := schema.Minimum, schema.Maximum; len(values) == 0 && low != nil && high != nil && *high-*low < 100 {
		for n := int64(*low); n <= int64(*high); n++ {
			values.Insert(strconv.FormatInt(n, 10))
		}
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("%s: this form needs an enum, or a minimum and a maximum less than 100 apart", path)
	}
	return values, nil
}
