// SPDX-License-Identifier: Apache-2.0

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
