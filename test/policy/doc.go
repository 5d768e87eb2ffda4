// SPDX-License-Identifier: Apache-2.0

// Package policy tests the shipped admission policy without a cluster: it gives the API
// server's admission plugin, as a library, what the controller writes, which the policy
// must accept, and what somebody with the controller's token may try, which it must
// refuse. Before that, it sets the API server's own defaults.
//
// Each kind of children has a file: it declares its row of internal/plan, and the cases
// that are particular to it. The tests find it by declare. What can be derived from the
// row needs no case: creates, repairs of random drift, adoptions, deletes, and a change
// of each single field that the Foo does not own.
//
// The end-to-end tests show that a whole API server enforces the policy.
package policy
