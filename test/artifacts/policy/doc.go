// SPDX-License-Identifier: Apache-2.0

// Package policy tests the shipped admission policy without a cluster: it gives the API
// server's admission plugin, as a library, what the controller writes, which the policy
// must accept, and what someone with the controller's token may try, which it must
// refuse. Before that, it sets the API server's own defaults.
//
// The kinds of children are those of internal/kinds; a file beside deployment_test.go has the
// cases that are particular to one. What can be derived from the row needs no case:
// creates, repairs of random drift, adoptions, deletes, and a change of each single field
// that the Foo does not own.
//
// The end-to-end tests show that a whole API server enforces the policy.
package policy
