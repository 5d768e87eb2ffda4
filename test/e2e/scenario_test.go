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

// Scenarios: checks that share a namespace and a controller.

package e2e

import "testing"

// scenario is one sentence of the contract, and the check that it holds.
type scenario struct {
	sentence string
	check    func(t *testing.T, ns *namespace)
}

// checkAll checks scenarios in parallel in one namespace. Each uses names of its own.
func checkAll(t *testing.T, ns *namespace, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		t.Run(s.sentence, func(t *testing.T) {
			t.Parallel()
			s.check(t, ns)
		})
	}
}
