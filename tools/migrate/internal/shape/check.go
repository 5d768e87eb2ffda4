// SPDX-License-Identifier: Apache-2.0

// Checks of a declaration against the schemas that the generator made of the Go types.

package shape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// Check returns an error unless the versions differ exactly as declared, in a way that
// loses nothing. raw is as the generator makes it.
func (d *Declaration) Check(raw *apiextensionsv1.CustomResourceDefinition) error {
	older, newer, err := d.versions(raw)
	if err != nil {
		return err
	}
	var errs []error
	for i := range d.Changes {
		if err := d.Changes[i].checkFields(older, newer); err != nil {
			errs = append(errs, fmt.Errorf("changes[%d]: %w", i, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := d.checkRest(older, newer); err != nil {
		return err
	}
	// The API server's own validation: it also bounds the cost of the rules.
	for stage := Original; stage <= Contracted; stage++ {
		crd, err := d.CRD(raw, stage)
		if err != nil {
			return err
		}
		if err := valid(crd); err != nil {
			return fmt.Errorf("the API server would refuse the stage %s; bounds (maxLength, maxItems, maxProperties) on the fields make a rule cheaper: %w", stage, err)
		}
	}
	return nil
}

func valid(crd *apiextensionsv1.CustomResourceDefinition) error {
	crd = crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = []string{version.Name}
		}
	}
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
		return err
	}
	return validation.ValidateCustomResourceDefinition(context.Background(), &internal).ToAggregate()
}

// checkFields checks the fields of one change.
func (c *Change) checkFields(older, newer *apiextensionsv1.CustomResourceDefinitionVersion) error {
	from, err := c.schemasOf(c.From, older, newer)
	if err != nil {
		return err
	}
	to, err := c.schemasOf(c.To, newer, older)
	if err != nil {
		return err
	}
	requires := required(older.Schema.OpenAPIV3Schema, c.From[0])
	for i, path := range c.fields() {
		version := older
		if i >= len(c.From) {
			version = newer
		}
		if required(version.Schema.OpenAPIV3Schema, path) != requires {
			return fmt.Errorf("%s and %s must be both required or both optional: an object without it is valid in one version only", c.From[0], path)
		}
	}
	return forms[c.Form].schemas(c, from, to)
}

// schemasOf returns the schemas of fields that one version has and the other lacks.
func (c *Change) schemasOf(paths []string, owner, other *apiextensionsv1.CustomResourceDefinitionVersion) ([]*apiextensionsv1.JSONSchemaProps, error) {
	var schemas []*apiextensionsv1.JSONSchemaProps
	for _, path := range paths {
		schema := field(owner.Schema.OpenAPIV3Schema, path)
		switch {
		case schema == nil:
			return nil, fmt.Errorf("%s has no field %s", owner.Name, path)
		case field(other.Schema.OpenAPIV3Schema, path) != nil:
			return nil, fmt.Errorf("%s has a field %s, too: both versions share one stored object, so the new field needs another name", other.Name, path)
		case schema.Default != nil:
			return nil, fmt.Errorf("%s has a default in the schema of %s. The API server would set it in objects that have only the other version's field, and the policy could not tell it from a value that a client gave, which would be lost: remove it from the types, and give the change a default", path, owner.Name)
		case owner.Subresources != nil && owner.Subresources.Scale != nil && owner.Subresources.Scale.SpecReplicasPath == "."+path:
			return nil, fmt.Errorf("%s is the number that the scale subresource sets, which no policy sees: an autoscaler would be refused. Keep this field", path)
		}
		if err := errors.Join(bounded(path, schema), exact(path, schema)); err != nil {
			return nil, err
		}
		schemas = append(schemas, schema)
	}
	return schemas, nil
}

// bounded returns an error if values of a field can have any size, so that the API server
// could not bound the cost of a rule about it.
func bounded(path string, schema *apiextensionsv1.JSONSchemaProps) error {
	switch {
	case schema.Type == "string" && schema.MaxLength == nil && len(schema.Enum) == 0:
		return fmt.Errorf("%s needs a maximum length (+kubebuilder:validation:MaxLength): the cost of a rule about it must have a bound", path)
	case schema.Type == "array" && schema.MaxItems == nil:
		return fmt.Errorf("%s needs a maximum of items (+kubebuilder:validation:MaxItems): the cost of a rule about it must have a bound", path)
	case schema.AdditionalProperties != nil && schema.MaxProperties == nil:
		return fmt.Errorf("%s needs a maximum of properties (+kubebuilder:validation:MaxProperties): the cost of a rule about it must have a bound", path)
	}
	return nil
}

// exact returns an error if a field can have integers that a policy would change: it patches
// objects as JSON, where integers beyond 2^53 become strings.
func exact(path string, schema *apiextensionsv1.JSONSchemaProps) error {
	const most = 1 << 53
	if schema.Type == "integer" && schema.Format != "int32" && (schema.Minimum == nil || *schema.Minimum < -most || schema.Maximum == nil || *schema.Maximum > most) {
		return fmt.Errorf("%s needs the Go type int32, or a minimum and a maximum within 2^53 (+kubebuilder:validation:Minimum, Maximum): larger numbers would become strings", path)
	}
	errs := []error{}
	for name, field := range schema.Properties {
		errs = append(errs, exact(path+"."+name, &field))
	}
	if schema.Items != nil {
		errs = append(errs, exact(path+"[]", schema.Items.Schema))
	}
	if schema.AdditionalProperties != nil {
		errs = append(errs, exact(path+"[]", schema.AdditionalProperties.Schema))
	}
	return errors.Join(errs...)
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
		return fmt.Errorf("%w\nThe API server does not convert between the versions: it drops a field that a version lacks without a word, from what is read and from what is stored. Declare each change, or make the schemas equal", err)
	}
	return nil
}

// sameFields returns an error if two schemas differ in more than descriptions.
func sameFields(nameA, nameB string, a, b *apiextensionsv1.JSONSchemaProps) error {
	plainA, err := plain(a)
	if err != nil {
		return err
	}
	plainB, err := plain(b)
	if err != nil {
		return err
	}
	if plainA != plainB {
		return fmt.Errorf("%s and %s have different schemas:\n%s", nameA, nameB, udiff.Unified(nameA, nameB, plainA, plainB))
	}
	return nil
}

// plain returns a schema as text without descriptions.
func plain(schema *apiextensionsv1.JSONSchemaProps) (string, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return "", err
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return "", err
	}
	withoutDescriptions(content)
	text, err = yaml.Marshal(content)
	return string(text), err
}

func withoutDescriptions(schema map[string]any) {
	delete(schema, "description")
	if items, ok := schema["items"].(map[string]any); ok {
		withoutDescriptions(items)
	}
	if values, ok := schema["additionalProperties"].(map[string]any); ok {
		withoutDescriptions(values)
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, property := range properties {
		if property, ok := property.(map[string]any); ok {
			withoutDescriptions(property)
		}
	}
}
