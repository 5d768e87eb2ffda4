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
	// from and to are the fields' types in the schema; anyType stands for each.
	from, to []string
	// loses says what the old version can't express, or is empty if it can express all.
	loses string
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
	// exact tells whether the old side expresses all of the new one. Empty means always.
	exact string
	// emptyIsAbsent is set if empty lists and maps count as fields that are not given.
	emptyIsAbsent bool
}

const anyType = ""

// celTypes are the types of the schema in CEL.
var celTypes = map[string]string{"string": "string", "integer": "int", "array": "list", "object": "map"}

var forms = map[string]form{
	"rename": {from: []string{anyType}, to: []string{anyType}, check: sameSchema, cel: func(*Change) conversion {
		return conversion{forward: []string{"$o0"}, backward: []string{"$n0"}, agree: "$o0 == $n0"}
	}},
	"split": {from: []string{"string"}, to: []string{"string", "integer"}, check: needsSeparator, cel: splitCEL},
	"join":  {from: []string{"string", "integer"}, to: []string{"string"}, check: needsSeparator, cel: joinCEL},
	"url":   {from: []string{"string", "string", "string"}, to: []string{"string"}, loses: "a query, a fragment and a user", cel: urlCEL},
	"enum":  {from: []string{anyType}, to: []string{anyType}, check: isBijection, cel: enumCEL},
	"quantity": {
		from: []string{"integer"}, to: []string{"string"}, loses: "a quantity that is not a whole number of the unit",
		check: knownUnit, cel: quantityCEL,
	},
	"list": {from: []string{"string"}, to: []string{"array"}, loses: "all items but the first", cel: func(*Change) conversion {
		return conversion{
			forward: []string{"[$o0]"}, backward: []string{"$n0[0]"}, agree: "$n0[0] == $o0", exact: "size($n0) == 1",
			emptyIsAbsent: true,
		}
	}},
	"map": {from: []string{"array"}, to: []string{"object"}, check: uniqueKeys, cel: mapCEL},
}

func needsSeparator(c *Change, _, _ *apiextensionsv1.JSONSchemaProps) error {
	if len(c.Separator) != 1 || strings.ContainsAny(c.Separator, `'\0123456789`) {
		return fmt.Errorf("%s: needs a separator of one character, such as ':', and no digit", c.Form)
	}
	return nil
}

func splitCEL(c *Change) conversion { return separateCEL(c, "$o0", "$n") }

func joinCEL(c *Change) conversion {
	s := separateCEL(c, "$n0", "$o")
	return conversion{forward: s.backward, backward: s.forward, validNew: s.validOld, agree: s.agree}
}

// separateCEL separates at the last separator, so that the first part may contain it, as an
// IPv6 address does. The second part is a number.
func separateCEL(c *Change, whole, part string) conversion {
	s := "'" + c.Separator + "'"
	at := whole + ".lastIndexOf(" + s + ")"
	first, second := whole+".substring(0, "+at+")", "int("+whole+".substring("+at+" + 1))"
	return conversion{
		forward: []string{first, second}, backward: []string{part + "0 + " + s + " + string(dyn(" + part + "1))"},
		validOld: whole + ".matches(r'^.+" + regexp.QuoteMeta(c.Separator) + "[0-9]{1,9}$')",
		agree:    first + " == " + part + "0 && " + second + " == " + part + "1",
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
		validOld: says(joined), validNew: "isURL($n0)",
		agree: says("$n0"), exact: "$n0 == " + joined,
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

// units are the bytes of the units of a quantity.
var units = map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}

func knownUnit(c *Change, _, _ *apiextensionsv1.JSONSchemaProps) error {
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
		validNew: valid,
		agree:    valid + " && " + units + " == $o0",
		exact:    valid + " && quantity($n0).compareTo(quantity(" + same + ")) == 0",
	}
}

func mapCEL(c *Change) conversion {
	return conversion{
		forward:  []string{fmt.Sprintf("$o0.transformMapEntry(i, item, {item.%s: item.%s})", c.Key, c.Value)},
		backward: []string{fmt.Sprintf("$n0.transformList(key, value, {'%s': dyn(key), '%s': dyn(value)})", c.Key, c.Value)},
		agree:    fmt.Sprintf("size($o0) == size($n0) && $o0.all(item, has(item.%[1]s) && item.%[1]s in $n0 && has(item.%[2]s) && $n0[item.%[1]s] == item.%[2]s)", c.Key, c.Value),
		validOld: fmt.Sprintf("$o0.all(item, has(item.%s) && has(item.%s))", c.Key, c.Value), emptyIsAbsent: true,
	}
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

// uniqueKeys checks that the list has each key once, so that a map of it loses no item.
func uniqueKeys(c *Change, list, table *apiextensionsv1.JSONSchemaProps) error {
	if c.Key == "" || c.Value == "" {
		return errors.New("map: needs key and value, the names of the fields of the old list's items")
	}
	if table.AdditionalProperties == nil {
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
