// SPDX-License-Identifier: Apache-2.0

// The CustomResourceDefinition in each stage of a migration.

package shape

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Stage is a state of the CustomResourceDefinition during a migration.
type Stage int

// The stages, in their order.
const (
	// Original has only the old version, or a new one that lacks its fields.
	Original Stage = iota
	// Expanded serves both versions, each with the fields of both. Objects are stored in the
	// old version. An object must have one side of each required change; if it has both,
	// they must agree.
	Expanded
	// Strict requires both sides of each change, or neither.
	Strict
	// Unserved no longer serves the old version.
	Unserved
	// Stored stores objects in the new version.
	Stored
	// Dropped has only the new version, with the fields of both.
	Dropped
	// Contracted has only the new version with its own fields.
	Contracted
)

var stageNames = []string{"original", "expanded", "strict", "unserved", "stored", "dropped", "contracted"}

func (s Stage) String() string { return stageNames[s] }

// ParseStage returns the stage of a name.
func ParseStage(name string) (Stage, error) {
	if i := slices.Index(stageNames, name); i >= 0 {
		return Stage(i), nil
	}
	return 0, fmt.Errorf("stage %q is unknown: use one of %s", name, strings.Join(stageNames, ", "))
}

// StageOf returns the stage that a CustomResourceDefinition in a cluster is in.
func (d *Declaration) StageOf(crd *apiextensionsv1.CustomResourceDefinition) (Stage, error) {
	older, newer, err := d.versions(crd)
	if err != nil {
		return 0, err
	}
	switch {
	case newer == nil && older == nil:
		return 0, fmt.Errorf("CustomResourceDefinition %s has neither %s nor %s", d.Name, d.Old, d.New)
	case newer == nil:
		return Original, nil
	case older == nil && d.hasOldFields(newer):
		return Dropped, nil
	case older == nil:
		return Contracted, nil
	case len(d.Changes) > 0 && !d.hasOldFields(newer): // a version for itself
		return Original, nil
	case newer.Storage:
		return Stored, nil
	case !older.Served:
		return Unserved, nil
	case len(d.Changes) == 0 || hasRule(newer, d.Changes[0].strictMessage()):
		return Strict, nil
	}
	return Expanded, nil
}

func (d *Declaration) hasOldFields(version *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return len(d.Changes) > 0 && field(version.Schema.OpenAPIV3Schema, d.Changes[0].From[0]) != nil
}

func hasRule(version *apiextensionsv1.CustomResourceDefinitionVersion, message string) bool {
	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	return slices.ContainsFunc(spec.XValidations, func(rule apiextensionsv1.ValidationRule) bool { return rule.Message == message })
}

// CRD returns the CustomResourceDefinition in a stage. raw is as the generator makes it:
// each version has only its own fields.
func (d *Declaration) CRD(raw *apiextensionsv1.CustomResourceDefinition, stage Stage) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := raw.DeepCopy()
	older, newer, err := d.bothVersions(crd)
	if err != nil {
		return nil, err
	}
	merged := stage != Original && stage != Contracted
	if merged {
		before := older.Schema.OpenAPIV3Schema.DeepCopy()
		for i := range d.Changes {
			c := &d.Changes[i]
			rules := c.rules(stage, required(before, c.From[0]))
			share(older, newer, c.From)
			share(newer, older, c.To)
			for _, version := range []*apiextensionsv1.CustomResourceDefinitionVersion{older, newer} {
				change(version.Schema.OpenAPIV3Schema, []string{"spec"}, func(spec *apiextensionsv1.JSONSchemaProps) {
					spec.XValidations = append(spec.XValidations, rules...)
				})
			}
		}
	}
	newer.Storage, older.Storage = stage >= Stored, stage < Stored
	newer.Served, older.Served = true, stage < Unserved
	newer.Deprecated, older.Deprecated = false, merged
	switch {
	case stage == Original:
		older.DeprecationWarning = nil
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{*older}
	case stage >= Dropped:
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{*newer}
	default:
		alignSchemas(older, newer)
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{*older, *newer}
	}
	return crd, nil
}

// alignSchemas makes the schemas of both versions equal to the letter if their selectable fields
// are, and unequal if they are not: the API server refuses anything else (kubernetes-issues.md).
func alignSchemas(older, newer *apiextensionsv1.CustomResourceDefinitionVersion) {
	switch {
	case equality.Semantic.DeepEqual(older.SelectableFields, newer.SelectableFields):
		if len(older.SelectableFields) > 0 {
			older.Schema = newer.Schema.DeepCopy()
		}
	case equality.Semantic.DeepEqual(older.Schema, newer.Schema):
		older.Schema.OpenAPIV3Schema.Description = "Deprecated: use " + newer.Name + ". " + older.Schema.OpenAPIV3Schema.Description
	}
}

// versions returns the versions of a CustomResourceDefinition; nil if it lacks one.
func (d *Declaration) versions(crd *apiextensionsv1.CustomResourceDefinition) (older, newer *apiextensionsv1.CustomResourceDefinitionVersion, err error) {
	for i := range crd.Spec.Versions {
		switch version := crd.Spec.Versions[i].DeepCopy(); version.Name {
		case d.Old:
			older = version
		case d.New:
			newer = version
		default:
			return nil, nil, fmt.Errorf("%s has the version %s besides %s and %s: remove it first, two versions can be kept equal", d.Name, version.Name, d.Old, d.New)
		}
	}
	return older, newer, nil
}

func (d *Declaration) bothVersions(crd *apiextensionsv1.CustomResourceDefinition) (older, newer *apiextensionsv1.CustomResourceDefinitionVersion, err error) {
	older, newer, err = d.versions(crd)
	if err == nil && (older == nil || newer == nil) {
		err = fmt.Errorf("%s needs the versions %s and %s", d.Name, d.Old, d.New)
	}
	return older, newer, err
}

// share makes fields of one version optional, and adds them to another.
func share(from, to *apiextensionsv1.CustomResourceDefinitionVersion, paths []string) {
	for _, path := range paths {
		steps := strings.Split(path, ".")
		for i := 2; i <= len(steps); i++ {
			for _, version := range []*apiextensionsv1.CustomResourceDefinitionVersion{from, to} {
				change(version.Schema.OpenAPIV3Schema, steps[:i-1], func(parent *apiextensionsv1.JSONSchemaProps) {
					parent.Required = slices.DeleteFunc(parent.Required, func(name string) bool { return name == steps[i-1] })
				})
			}
			shared := field(from.Schema.OpenAPIV3Schema, strings.Join(steps[:i], ".")).DeepCopy()
			if i < len(steps) {
				shared = &apiextensionsv1.JSONSchemaProps{Type: "object", Description: shared.Description}
			}
			shared.Description = fmt.Sprintf("Of %s. %s", from.Name, shared.Description)
			change(to.Schema.OpenAPIV3Schema, steps[:i-1], func(parent *apiextensionsv1.JSONSchemaProps) {
				if _, has := parent.Properties[steps[i-1]]; !has {
					if parent.Properties == nil {
						parent.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
					}
					parent.Properties[steps[i-1]] = *shared
				}
			})
		}
	}
}

// change changes a field's schema in its parents, which hold their properties by value.
func change(schema *apiextensionsv1.JSONSchemaProps, path []string, do func(*apiextensionsv1.JSONSchemaProps)) {
	if len(path) == 0 {
		do(schema)
		return
	}
	if child, ok := schema.Properties[path[0]]; ok {
		change(&child, path[1:], do)
		schema.Properties[path[0]] = child
	}
}

// field returns the schema of a field, or nil.
func field(schema *apiextensionsv1.JSONSchemaProps, path string) (found *apiextensionsv1.JSONSchemaProps) {
	change(schema, strings.Split(path, "."), func(field *apiextensionsv1.JSONSchemaProps) { found = field })
	return found
}

// required reports whether a field and all its parents are required.
func required(schema *apiextensionsv1.JSONSchemaProps, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		if !slices.Contains(schema.Required, name) {
			return false
		}
		child := schema.Properties[name]
		schema = &child
	}
	return true
}
