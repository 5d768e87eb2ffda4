// SPDX-License-Identifier: Apache-2.0

// Tests of the stages and the audit policy.

package cluster

import (
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestKwokStages(t *testing.T) {
	kinds := map[string]int{}
	for document := range strings.SplitSeq(kwokStages(), "\n---\n") {
		var stage struct {
			Kind string `json:"kind"`
			Spec struct {
				ResourceRef struct {
					Kind string `json:"kind"`
				} `json:"resourceRef"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(document), &stage); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if stage.Kind != "Stage" {
			t.Errorf("a document has kind %q", stage.Kind)
		}
		kinds[stage.Spec.ResourceRef.Kind]++
	}
	if kinds["Node"] != 2 || kinds["Pod"] != 3 {
		t.Errorf("stages: %v", kinds)
	}
}

func TestAuditPolicy(t *testing.T) {
	type resources struct {
		Group     string   `json:"group"`
		Resources []string `json:"resources"`
	}
	type rule struct {
		Level             string      `json:"level"`
		Verbs             []string    `json:"verbs"`
		Resources         []resources `json:"resources"`
		OmitManagedFields bool        `json:"omitManagedFields"`
	}
	reads, others := rule{Level: "None", Verbs: []string{"get", "list", "watch"}}, rule{Level: "Metadata"}
	bodies := func(group, resource string) rule {
		return rule{Level: "RequestResponse", Resources: []resources{{group, []string{resource, resource + "/*"}}}, OmitManagedFields: true}
	}
	for flags, want := range map[string][]rule{
		"":                                     {reads, others},
		"-audit-bodies=pods,deployments.apps,": {reads, bodies("", "pods"), bodies("apps", "deployments"), others},
	} {
		var policy struct {
			Rules []rule `json:"rules"`
		}
		if err := yaml.Unmarshal([]byte(auditPolicy(parseOptions(t, flags).AuditBodies)), &policy); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(policy.Rules, want) {
			t.Errorf("with %q: got %+v, want %+v", flags, policy.Rules, want)
		}
	}
}
