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

// A test of integers that do not fit the Go types.

package fuzz

import (
	"fmt"
	"strings"
	"testing"
)

// A stored Foo with such an integer would prevent the typed client from listing Foos.
func TestIntegersThatDoNotFitTheTypesAreRefused(t *testing.T) {
	s := newServer(t)
	for field, numbers := range map[string][]string{
		`{"deploymentName":"web","replicas":%s}`: {"0", "11", "-1", "2147483648", "1099511627776", "1e20", "1.5"},
		`{"replicas":%s}`:                        {"-1", "2147483648", "1099511627776", "1e20", "1.5"},
		`{"availableReplicas":%s}`:               {"-1", "2147483648", "1099511627776", "1e20", "1.5"},
		`{"observedGeneration":%s}`:              {"-1", "9007199254740992", "9223372036854775808", "1e20", "1.5"},
		condition(`,"observedGeneration":%s`):    {"-1", "9223372036854775808", "1e20", "1.5"},
	} {
		for _, number := range numbers {
			spec, status := plainSpec, fmt.Sprintf(field, number)
			if strings.Contains(field, "deploymentName") {
				spec, status = status, `{}`
			}
			if _, err := s.accept(t, request(plainMetadata, spec, status)); err == nil {
				t.Errorf("accepted: spec %s, status %s", spec, status)
			}
		}
	}
	if _, err := s.accept(t, request(plainMetadata, plainSpec, condition(`,"observedGeneration":3`))); err != nil {
		t.Errorf("a valid Foo is refused: %v", err)
	}
}
