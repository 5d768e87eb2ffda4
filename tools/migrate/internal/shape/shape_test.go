// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/tools/migrate/internal/shape/shapetest"
)

// TestWrites makes the writes in process, by the API server's own code.
func TestWrites(t *testing.T) {
	d, raw := load(t)
	for name, writes := range shapetest.Histories {
		t.Run(name, func(t *testing.T) {
			crd, err := d.CRD(raw, Expanded)
			must(t, err)
			s := newServer(t, crd, d.SyncPolicy())
			var stored map[string]any
			shapetest.Play(t, writes, func(version string, sent map[string]any) (map[string]any, error) {
				got, err := s.write(t, version, sent, stored)
				if err == nil {
					stored = got
				}
				return got, err
			})
		})
	}
}

func TestRandomWrites(t *testing.T) {
	d, raw := load(t)
	must(t, d.Check(raw))
	crd, err := d.CRD(raw, Expanded)
	must(t, err)
	s := newServer(t, crd, d.SyncPolicy())
	shapetest.PlayPairs(t, func(version string, sent, before map[string]any) (map[string]any, error) {
		return s.write(t, version, sent, before)
	})
}

// TestAValueThatCantBeConverted stays writable where it was stored before.
func TestAValueThatCantBeConverted(t *testing.T) {
	d, raw := load(t)
	crd, err := d.CRD(raw, Expanded)
	must(t, err)
	s := newServer(t, crd, d.SyncPolicy())
	stored := shapetest.Thing(t, "{name: a, address: noport}")
	got, err := s.write(t, "v1alpha1", shapetest.Thing(t, "{name: a, address: noport, replicas: 2}"), stored)
	if spec, _ := got["spec"].(map[string]any); err != nil || spec["title"] != "a" || spec["host"] != nil || d.IsComplete(got) {
		t.Errorf("got %v and the error %v", got, err)
	}
	if _, err := s.write(t, "v1alpha1", shapetest.Thing(t, "{name: a, address: another}"), stored); err == nil {
		t.Error("another such value was accepted")
	}
}

func TestSeparators(t *testing.T) {
	for _, separator := range []string{"^", "-", "]", ".", "#"} {
		d, raw := load(t)
		d.Changes[1].Separator = separator
		must(t, errors.Join(d.check(), d.Check(raw)))
		crd, err := d.CRD(raw, Strict)
		must(t, err)
		s := newServer(t, crd, d.SyncPolicy())
		got, err := s.write(t, "v1alpha1", shapetest.Thing(t, "{name: a, address: 'h"+separator+"80'}"), nil)
		if spec, _ := got["spec"].(map[string]any); err != nil || spec["host"] != "h" || spec["port"] != int64(80) {
			t.Errorf("%s: got %v and the error %v", separator, got, err)
		}
	}
}

func TestManagedFieldsMove(t *testing.T) {
	d, _ := load(t)
	entry := func(manager, version, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "example.org/" + version, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	older := []metav1.ManagedFieldsEntry{
		entry("both", "v1alpha1", `{"f:spec":{"f:address":{},"f:name":{}}}`),
		entry("other", "v1alpha1", `{"f:spec":{"f:cpu":{},"f:ports":{"k:{\"name\":\"a\"}":{"f:port":{}}}}}`),
		entry("both", "v1beta1", `{"f:spec":{"f:replicas":{}}}`),
	}
	for back, want := range map[bool][]metav1.ManagedFieldsEntry{
		false: {
			entry("other", "v1beta1", `{"f:spec":{"f:portsByName":{},"f:resources":{"f:cpu":{}}}}`),
			entry("both", "v1beta1", `{"f:spec":{"f:host":{},"f:port":{},"f:replicas":{},"f:title":{}}}`),
		},
		true: {
			entry("other", "v1alpha1", `{"f:spec":{"f:cpu":{},"f:ports":{}}}`),
			entry("both", "v1alpha1", `{"f:spec":{"f:address":{},"f:name":{},"f:replicas":{}}}`),
		},
	} {
		moved, err := d.MoveManagedFields(older, false)
		must(t, err)
		if back {
			moved, err = d.MoveManagedFields(moved, true)
			must(t, err)
		}
		if diff := cmp.Diff(want, moved); diff != "" {
			t.Errorf("back: %t (-want +got)\n%s", back, diff)
		}
	}
}

func TestLossyValuesCanBeRefused(t *testing.T) {
	d, raw := load(t)
	for i := range d.Changes {
		if forms[d.Changes[i].Form].loses != "" {
			d.Changes[i].Lossy = Refuse
		}
	}
	must(t, d.Check(raw))
	crd, err := d.CRD(raw, Strict)
	must(t, err)
	s := newServer(t, crd, d.SyncPolicy())
	for spec, message := range map[string]string{
		"{title: a, size: 2Gi, ips: ['1'], url: 'http://b/'}": "",
		"{title: a, size: 512Mi}":                             "spec.sizeGB can't express this value of spec.size yet",
		"{title: a, ips: ['1', '2']}":                         "spec.ip can't express this value of spec.ips yet",
		"{title: a, url: 'http://b/?q=1'}":                    "spec.scheme can't express this value of spec.url yet",
	} {
		_, err := s.write(t, "v1beta1", shapetest.Thing(t, spec), nil)
		if (err == nil) != (message == "") || err != nil && !strings.Contains(err.Error(), message) {
			t.Errorf("%s: got the error %v, want %q", spec, err, message)
		}
	}
}

// TestRefusals makes mistakes in a declaration, or in the types.
func TestRefusals(t *testing.T) {
	spec := func(crd *apiextensionsv1.CustomResourceDefinition, version int) *apiextensionsv1.JSONSchemaProps {
		spec := crd.Spec.Versions[version].Schema.OpenAPIV3Schema.Properties["spec"]
		return &spec // whose maps are shared
	}
	set := func(crd *apiextensionsv1.CustomResourceDefinition, version int, name string, do func(*apiextensionsv1.JSONSchemaProps)) {
		field := spec(crd, version).Properties[name]
		do(&field)
		spec(crd, version).Properties[name] = field
	}
	for message, change := range map[string]func(*Declaration, *apiextensionsv1.CustomResourceDefinition){
		"needs a conversion webhook": func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) { d.Changes[0].Form = "lookup" },
		"can't have two meanings":    func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) { d.Changes[0].To = d.Changes[0].From },
		"loses something in":         func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) { d.Changes[3].Lossy = "" },
		"loses nothing":              func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) { d.Changes[0].Lossy = Keep },
		"could not be found again":   func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) { d.Changes[2].Values["2"] = "Small" },
		"is not a field of the spec": func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) {
			d.Changes[0].From = []string{"status.phase"}
		},
		"and no digit":      func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) { d.Changes[1].Separator = "7" },
		"needs a separator": func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) { d.Changes[1].Separator = "" },
		"unit":              func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) { d.Changes[3].Unit = "GB" },
		"needs a value for each": func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) {
			delete(d.Changes[7].Default, "spec.user")
		},
		"have different schemas": func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) { d.Changes = d.Changes[1:] },
		"has no field spec.elsewhere": func(d *Declaration, _ *apiextensionsv1.CustomResourceDefinition) {
			d.Changes[0].To = []string{"spec.elsewhere"}
		},
		"is the number that the scale subresource sets": func(_ *Declaration, crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Subresources.Scale.SpecReplicasPath = ".spec.name"
		},
		"has a default in the schema": func(_ *Declaration, crd *apiextensionsv1.CustomResourceDefinition) {
			set(crd, 1, "title", func(f *apiextensionsv1.JSONSchemaProps) { f.Default = &apiextensionsv1.JSON{Raw: []byte(`"x"`)} })
		},
		"needs a maximum length": func(_ *Declaration, crd *apiextensionsv1.CustomResourceDefinition) {
			set(crd, 1, "title", func(f *apiextensionsv1.JSONSchemaProps) { f.MaxLength = nil })
		},
		"would become strings": func(_ *Declaration, crd *apiextensionsv1.CustomResourceDefinition) {
			set(crd, 0, "ports", func(f *apiextensionsv1.JSONSchemaProps) {
				port := f.Items.Schema.Properties["port"]
				port.Format = ""
				f.Items.Schema.Properties["port"] = port
			})
		},
		"needs a maximum of items": func(_ *Declaration, crd *apiextensionsv1.CustomResourceDefinition) {
			set(crd, 1, "ips", func(f *apiextensionsv1.JSONSchemaProps) { f.MaxItems = nil })
		},
		"the map would lose one": func(_ *Declaration, crd *apiextensionsv1.CustomResourceDefinition) {
			set(crd, 0, "ports", func(f *apiextensionsv1.JSONSchemaProps) { f.XListType = nil })
		},
		"are not those declared: 4": func(_ *Declaration, crd *apiextensionsv1.CustomResourceDefinition) {
			set(crd, 0, "level", func(f *apiextensionsv1.JSONSchemaProps) { f.Maximum = new(4.0) })
		},
		"must be both required or both optional": func(_ *Declaration, crd *apiextensionsv1.CustomResourceDefinition) {
			schema := crd.Spec.Versions[1].Schema.OpenAPIV3Schema
			change := *spec(crd, 1)
			change.Required = nil
			schema.Properties["spec"] = change
		},
	} {
		d, raw := load(t)
		change(d, raw)
		err := d.check()
		if err == nil {
			err = d.Check(raw)
		}
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("got the error %v, want %q", err, message)
		}
	}
}
