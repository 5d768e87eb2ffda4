// SPDX-License-Identifier: Apache-2.0

// Package waiters checks what tools that wait for Foos make of a status: kstatus, by which
// Helm 4, Flux and kpt go, and the health check for Argo CD in artifacts/argocd. Neither
// may take a Foo for ready before the controller has carried out its newest spec.
//
//	go test -count=1 .
//
// Use -count=1, because go test does not notice changes of files outside of the module.
package waiters
