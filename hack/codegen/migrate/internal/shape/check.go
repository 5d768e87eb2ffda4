// SPDX-License-Identifier: Apache-2.0

// Checks of a declaration against the schemas that the generator made of the Go types.

package shape

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aymanbagabas/go-udiff"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/hack/codegen/internal/validate"
)

// Check returns an error unless the versions differ exactly as declared, in a way that
// loses nothing. raw is as the generator makes it.
func (d *Declaration) Check(raw *apiextensionsv1.CustomResourceDefinition) error {
	if d.Group() == "" || d.Old == "" || d.New == "" || d.Old == d.New {
		return errors.New("crd, old and new are required: the name of the CustomResourceDefinition and two versions")
	}
	older, newer, err := d.bothVersions(raw)
	if err != nil {
		return err
	}
	var errs []error
	used := sets.New[string]()
	for i := range d.Changes {
		c := &d.Changes[i]
		err := c.check()
		if err == nil {
			err = c.checkFields(older, newer)
		}
		for _, path := range c.fields() {
			if used.Has(path) {
				err = errors.Join(err, fmt.Errorf("%s occurs twice: both versions share one stored object, so a field can't have two meanings; give the new field another name", path))
			}
			used.Insert(path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("changes[%d]: %w", i, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := d.checkRest(older, newer); err != nil {
		return err
	}
	return d.checkStages(raw)
}

// checkStages validates the definition of each stage as the API server does. That also bounds the cost of the rules.
func (d *Declaration) checkStages(raw *apiextensionsv1.CustomResourceDefinition) error {
	for stage := Original; stage <= Contracted; stage++ {
		crd, err := d.CRD(raw, stage)
		if err != nil {
			return err
		}
		refusals, err := validate.CRD(crd)
		if err == nil {
			err = refusals.ToAggregate()
		}
		if err != nil {
			return fmt.Errorf("the API server would refuse the stage %s; bounds (maxLength, maxItems, maxProperties) on the fields make a rule cheaper: %w", stage, err)
		}
	}
	return nil
}

// CheckConversion returns an error unless the declaration says that a webhook converts, and nothing else.
func (d *Declaration) CheckConversion() error {
	if d.Conversion != Webhook || d.Old != "" || d.New != "" || len(d.Changes) > 0 {
		return fmt.Errorf("conversion is %s or nothing, and with it there is neither old, new nor changes", Webhook)
	}
	return nil
}

// checkFields checks the fields of one change, which one version has and the other lacks.
func (c *Change) checkFields(older, newer *apiextensionsv1.CustomResourceDefinitionVersion) error {
	f := forms[c.Form]
	types := slices.Concat(f.from, f.to)
	for i, path := range c.fields() {
		owner, other := older, newer
		if i >= len(c.From) {
			owner, other = newer, older
		}
		if err := checkField(path, types[i], owner, other); err != nil {
			return err
		}
		if required(owner.Schema.OpenAPIV3Schema, path) != required(older.Schema.OpenAPIV3Schema, c.From[0]) {
			return fmt.Errorf("%s and %s must be both required or both optional: an object without it is valid in one version only", c.From[0], path)
		}
	}
	if f.check == nil {
		return nil
	}
	return f.check(c, field(older.Schema.OpenAPIV3Schema, c.From[0]), field(newer.Schema.OpenAPIV3Schema, c.To[0]))
}

func checkField(path, want string, owner, other *apiextensionsv1.CustomResourceDefinitionVersion) error {
	schema := field(owner.Schema.OpenAPIV3Schema, path)
	switch {
	case schema == nil:
		return fmt.Errorf("%s has no field %s", owner.Name, path)
	case field(other.Schema.OpenAPIV3Schema, path) != nil:
		return fmt.Errorf("%s has a field %s, too: both versions share one stored object, so the new field needs another name", other.Name, path)
	case schema.Default != nil:
		return fmt.Errorf("%s has a default in the schema of %s. The API server would set it in objects that have only the other version's field, and the policy could not tell it from a value that a client gave, which would be lost: remove it from the types, and give the change a default", path, owner.Name)
	case owner.Subresources != nil && owner.Subresources.Scale != nil && owner.Subresources.Scale.SpecReplicasPath == "."+path:
		return fmt.Errorf("%s is the number that the scale subresource sets, which no policy sees: an autoscaler would be refused. Keep this field", path)
	case want != anyType && schema.Type != want:
		return fmt.Errorf("%s has the type %s; this form needs %s", path, schema.Type, want)
	}
	return exact(path, schema)
}

// exact returns an error if a field can have integers that a policy would change: it patches
// objects as JSON, where integers beyond 2^53 become strings.
func exact(path string, schema *apiextensionsv1.JSONSchemaProps) error {
	const most = 1 << 53
	var errs []error
	visit(path, schema.DeepCopy(), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		if schema.Type == "integer" && schema.Format != "int32" && (schema.Minimum == nil || *schema.Minimum < -most || schema.Maximum == nil || *schema.Maximum > most) {
			errs = append(errs, fmt.Errorf("%s needs the Go type int32, or a minimum and a maximum within 2^53 (+kubebuilder:validation:Minimum, Maximum): larger numbers would become strings", path))
		}
	})
	return errors.Join(errs...)
}

// visit calls a function, which may change them, for a schema and all schemas in it.
func visit(path string, schema *apiextensionsv1.JSONSchemaProps, do func(string, *apiextensionsv1.JSONSchemaProps)) {
	do(path, schema)
	for name, child := range schema.Properties {
		visit(path+"."+name, &child, do)
		schema.Properties[name] = child
	}
	if schema.Items != nil {
		visit(path+"[]", schema.Items.Schema, do)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		visit(path+"[]", schema.AdditionalProperties.Schema, do)
	}
}

// checkRest returns an error if the versions differ in more than the declared fields.
func (d *Declaration) checkRest(older, newer *apiextensionsv1.CustomResourceDefinitionVersion) error {
	older, newer = older.DeepCopy(), newer.DeepCopy()
	for i := range d.Changes {
		// With the fields of both, the schemas must be equal.
		share(older, newer, d.Changes[i].From)
		share(newer, older, d.Changes[i].To)
	}
	if err := sameFields(d.Old, d.New, older.Schema.OpenAPIV3Schema, newer.Schema.OpenAPIV3Schema); err != nil {
		return fmt.Errorf("%w\n%s Declare each change, or make the schemas equal", err, noConversion)
	}
	return nil
}

// CheckUndeclared returns an error if versions of a kind are served that have different schemas.
func CheckUndeclared(raw *apiextensionsv1.CustomResourceDefinition) error {
	var first *apiextensionsv1.CustomResourceDefinitionVersion
	for i := range raw.Spec.Versions {
		switch version := &raw.Spec.Versions[i]; {
		case !version.Served:
		case first == nil:
			first = version
		default:
			if err := sameFields(first.Name, version.Name, first.Schema.OpenAPIV3Schema, version.Schema.OpenAPIV3Schema); err != nil {
				return fmt.Errorf("%s: %w\n%s Declare what differs in pkg/apis/GROUP/versions.yaml, or there, that a webhook of yours converts (hack/codegen/migrate/README.md), or serve only one version, with // +kubebuilder:unservedversion above the kind in the other", raw.Name, err, noConversion)
			}
		}
	}
	return nil
}

// noConversion is why versions must have the same fields.
const noConversion = "The API server does not convert between the versions: it drops a field that a version lacks without a word, from what is read and from what is stored."

// sameFields returns an error if two schemas differ in more than descriptions.
func sameFields(nameA, nameB string, a, b *apiextensionsv1.JSONSchemaProps) error {
	var plain []string
	for _, schema := range []*apiextensionsv1.JSONSchemaProps{a.DeepCopy(), b.DeepCopy()} {
		visit("", schema, func(_ string, schema *apiextensionsv1.JSONSchemaProps) { schema.Description = "" })
		text, err := yaml.Marshal(schema)
		if err != nil {
			return err
		}
		plain = append(plain, string(text))
	}
	if plain[0] != plain[1] {
		return fmt.Errorf("%s and %s have different schemas:\n%s", nameA, nameB, udiff.Unified(nameA, nameB, plain[0], plain[1]))
	}
	return nil
}
