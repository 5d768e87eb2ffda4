/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Tests of the stages and the audit policy.

package cluster

import (
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

func TestAuditPolicyLeavesOutReads(t *testing.T) {
	var policy struct {
		Rules []struct {
			Level string   `json:"level"`
			Verbs []string `json:"verbs"`
		} `json:"rules"`
	}
	if err := yaml.Unmarshal([]byte(auditPolicy), &policy); err != nil {
		t.Fatal(err)
	}
	if len(policy.Rules) != 2 {
		t.Fatalf("rules: %+v", policy.Rules)
	}
	if reads := policy.Rules[0]; reads.Level != "None" || strings.Join(reads.Verbs, " ") != "get list watch" {
		t.Errorf("reads: %+v", reads)
	}
	if rest := policy.Rules[1]; rest.Level != "Metadata" || rest.Verbs != nil {
		t.Errorf("everything else: %+v", rest)
	}
}
