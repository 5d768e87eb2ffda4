// SPDX-License-Identifier: Apache-2.0

// The forms of a change: how the values of one version become those of the other, in CEL.

package shape

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// form is a way to convert values.
type form struct {
	from, to int // numbers of fields
	// loses says what the old version can't express, or is empty if it can express all.
	loses string
	// check returns an error if the change can't be inverted.
	check func(*Change) error
	// schemas returns an error if fields of these schemas can't be converted so.
	schemas func(c *Change, from, to []*apiextensionsv1.JSONSchemaProps) error
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
	// exact tells whether the old side expresses all of the new one. Empty means always.
	exact string
	// emptyIsAbsent is set if empty lists and maps count as fields that are not given.
	emptyIsAbsent bool
	// types are the CEL types of the old and the new fields that the expressions need. The policy
	// runs before the schema is checked.
	types []string
}

var forms = map[string]form{
	"rename": {from: 1, to: 1, check: anyChange, schemas: sameSchema, cel: func(*Change) conversion {
		return conversion{forward: []string{"$o0"}, backward: []string{"$n0"}, agree: "$o0 == $n0"}
	}},
	"split": {from: 1, to: 2, check: needsSeparator, schemas: stringsAndNumber, cel: splitCEL},
	"join": {from: 2, to: 1, check: needsSeparator, schemas: func(c *Change, from, to []*apiextensionsv1.JSONSchemaProps) error {
		return stringsAndNumber(c, to, from)
	}, cel: func(c *Change) conversion { return splitCEL(c).inverted() }},
	"url":      {from: 3, to: 1, loses: "a query, a fragment and a user", check: anyChange, schemas: typed("string", "string"), cel: urlCEL},
	"enum":     {from: 1, to: 1, check: injective, schemas: coversEnum, cel: enumCEL},
	"quantity": {from: 1, to: 1, loses: "a quantity that is not a whole number of the unit", check: knownUnit, schemas: typed("integer", "string"), cel: quantityCEL},
	"list": {from: 1, to: 1, loses: "all items but the first", check: anyChange, schemas: typed("string", "array"), cel: func(*Change) conversion {
		return conversion{
			forward: []string{"[$o0]"}, backward: []string{"$n0[0]"}, agree: "$n0[0] == $o0", exact: "size($n0) == 1",
			emptyIsAbsent: true, types: []string{"string", "list"},
		}
	}},
	"map": {from: 1, to: 1, check: func(c *Change) error {
		if c.Key == "" || c.Value == "" {
			return errors.New("map: needs key and value, the names of the fields of the old list's items")
		}
		return nil
	}, schemas: uniqueKeys, cel: mapCEL},
}

func (c conversion) inverted() conversion {
	swap := func(expression string) string {
		return strings.NewReplacer("$o", "$n", "$n", "$o").Replace(expression)
	}
	inverted := conversion{validOld: swap(c.validNew), validNew: swap(c.validOld), agree: swap(c.agree), emptyIsAbsent: c.emptyIsAbsent}
	split := len(c.types) - len(c.forward)
	inverted.types = slices.Concat(c.types[split:], c.types[:split])
	for _, expression := range c.backward {
		inverted.forward = append(inverted.forward, swap(expression))
	}
	for _, expression := range c.forward {
		inverted.backward = append(inverted.backward, swap(expression))
	}
	return inverted
}

func anyChange(*Change) error { return nil }

func needsSeparator(c *Change) error {
	if len(c.Separator) != 1 || strings.ContainsAny(c.Separator, `'\0123456789`) {
		return fmt.Errorf("%s: needs a separator of one character, such as ':', and no digit", c.Form)
	}
	return nil
}

// splitCEL separates at the last separator, so that the first part may contain it, as an
// IPv6 address does. The second part is a number.
func splitCEL(c *Change) conversion {
	s := "'" + c.Separator + "'"
	first, second := "$o0.substring(0, $o0.lastIndexOf("+s+"))", "int($o0.substring($o0.lastIndexOf("+s+") + 1))"
	return conversion{
		forward: []string{first, second}, backward: []string{"$n0 + " + s + " + string(dyn($n1))"},
		types:    []string{"string", "string", "int"},
		validOld: "$o0.matches(r'^.+" + regexp.QuoteMeta(c.Separator) + "[0-9]{1,9}$')",
		agree:    first + " == $n0 && " + second + " == $n1",
	}
}

func urlCEL(*Change) conversion {
	joined := "$o0 + '://' + $o1 + $o2"
	says := func(value string) string {
		return fmt.Sprintf("isURL(%[1]s) && url(%[1]s).getScheme() == $o0 && url(%[1]s).getHost() == $o1 && url(%[1]s).getEscapedPath() == $o2", value)
	}
	return conversion{
		forward:  []string{joined},
		backward: []string{"url($n0).getScheme()", "url($n0).getHost()", "url($n0).getEscapedPath()"},
		validOld: says(joined), validNew: "isURL($n0)", types: []string{"string", "string", "string", "string"},
		agree: says("$n0"), exact: "$n0 == " + joined,
	}
}

// injective returns an error if two old values have the same new one.
func injective(c *Change) error {
	olds := map[string]string{}
	for old, value := range c.Values {
		if other, ok := olds[value]; ok {
			return fmt.Errorf("enum: %q and %q would both be %q, so that the old value could not be found again: give each its own", min(old, other), max(old, other), value)
		}
		olds[value] = old
	}
	if len(olds) == 0 {
		return errors.New("enum: needs values: the new value for each old one")
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

// units are the bytes of the units of a quantity.
var units = map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}

func knownUnit(c *Change) error {
	if units[c.Unit] == 0 {
		return fmt.Errorf("quantity: unit %q is unknown: use Ki, Mi, Gi or Ti", c.Unit)
	}
	return nil
}

// quantityCEL divides floating-point numbers, which is exact below 2^53 units, because the units
// are powers of two. A large quantity counts as no integer in CEL.
func quantityCEL(c *Change) conversion {
	valid := fmt.Sprintf("isQuantity($n0) && quantity($n0).isLessThan(quantity('%[1]d%[2]s')) && quantity($n0).isGreaterThan(quantity('-%[1]d%[2]s'))", int64(1<<53), c.Unit)
	units := fmt.Sprintf("int(quantity($n0).asApproximateFloat() / %d.0)", units[c.Unit])
	same := "string(dyn($o0)) + '" + c.Unit + "'"
	return conversion{
		forward: []string{same}, backward: []string{units},
		validNew: valid, types: []string{"int", "string"},
		agree: valid + " && " + units + " == $o0",
		exact: valid + " && quantity($n0).compareTo(quantity(" + same + ")) == 0",
	}
}

func mapCEL(c *Change) conversion {
	return conversion{
		forward:  []string{fmt.Sprintf("$o0.transformMapEntry(i, item, {item.%s: item.%s})", c.Key, c.Value)},
		backward: []string{fmt.Sprintf("$n0.transformList(key, value, {'%s': dyn(key), '%s': dyn(value)})", c.Key, c.Value)},
		agree:    fmt.Sprintf("size($o0) == size($n0) && $o0.all(item, has(item.%[1]s) && item.%[1]s in $n0 && has(item.%[2]s) && $n0[item.%[1]s] == item.%[2]s)", c.Key, c.Value),
		validOld: fmt.Sprintf("$o0.all(item, has(item.%s) && has(item.%s))", c.Key, c.Value), emptyIsAbsent: true, types: []string{"list", "map"},
	}
}

// typed returns a check that the old fields and the new ones have these types.
func typed(from, to string) func(*Change, []*apiextensionsv1.JSONSchemaProps, []*apiextensionsv1.JSONSchemaProps) error {
	return func(c *Change, olds, news []*apiextensionsv1.JSONSchemaProps) error {
		return errors.Join(haveType(c.From, olds, from), haveType(c.To, news, to))
	}
}

func haveType(paths []string, schemas []*apiextensionsv1.JSONSchemaProps, want string) error {
	for i, schema := range schemas {
		if schema.Type != want {
			return fmt.Errorf("%s has the type %s; this form needs %s", paths[i], schema.Type, want)
		}
	}
	return nil
}

func sameSchema(c *Change, from, to []*apiextensionsv1.JSONSchemaProps) error {
	return sameFields(c.From[0], c.To[0], from[0], to[0])
}

// stringsAndNumber checks the fields of a split.
func stringsAndNumber(c *Change, from, to []*apiextensionsv1.JSONSchemaProps) error {
	if from[0].Type != "string" || to[0].Type != "string" || to[1].Type != "integer" {
		return fmt.Errorf("%s: needs a string on one side, and a string and an integer on the other", c.Form)
	}
	return nil
}

// coversEnum checks that each value of both schemas has one in the other.
func coversEnum(c *Change, from, to []*apiextensionsv1.JSONSchemaProps) error {
	news := sets.New[string]()
	for _, value := range c.Values {
		news.Insert(value)
	}
	olds, err := allowed(c.From[0], from[0])
	if err != nil {
		return err
	}
	added, err := allowed(c.To[0], to[0])
	if err != nil {
		return err
	}
	if missing := olds.SymmetricDifference(sets.KeySet(c.Values)).Union(added.SymmetricDifference(news)); len(missing) > 0 {
		return fmt.Errorf("enum: the values that the schemas of %s and %s allow are not those declared: %s", c.From[0], c.To[0], strings.Join(sets.List(missing), ", "))
	}
	return nil
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

// uniqueKeys checks that the list has each key once, so that a map of it loses no item.
func uniqueKeys(c *Change, from, to []*apiextensionsv1.JSONSchemaProps) error {
	list, table := from[0], to[0]
	if list.Type != "array" || table.Type != "object" || table.AdditionalProperties == nil {
		return errors.New("map: needs a list in the old version and a map (additionalProperties) in the new one")
	}
	if list.XListType == nil || *list.XListType != "map" || !slices.Equal(list.XListMapKeys, []string{c.Key}) {
		return fmt.Errorf("map: %s must have the markers listType=map and listMapKey=%s: of two items with one key, the map would lose one", c.From[0], c.Key)
	}
	if items := list.Items.Schema; len(items.Properties) != 2 || len(items.Required) != 2 {
		return fmt.Errorf("map: the items of %s must have the fields %s and %s, both required, and no other", c.From[0], c.Key, c.Value)
	}
	return nil
}
