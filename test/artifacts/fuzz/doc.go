// SPDX-License-Identifier: Apache-2.0

// Package fuzz compares the CustomResourceDefinition with the typed client: the client
// can read everything that the API server accepts, and the API server enforces the bounds
// that types.go states.
//
//	go test -count=1 .
//	go test -fuzz=FuzzAcceptedFooIsRead .
//
// Use -count=1, because go test does not notice changes of the CRD, which is a file
// outside of the module. The API server is used as a library: its code that decodes,
// prunes and validates custom resources.
package fuzz
