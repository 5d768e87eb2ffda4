// SPDX-License-Identifier: Apache-2.0

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
