// SPDX-License-Identifier: Apache-2.0

// Package upstream holds the file that turns a copy of kubernetes/sample-controller into
// one without its client's rate limiter.
package upstream

import _ "embed"

// Main replaces upstream's main.go. It is not a Go file here, because it belongs to
// upstream's package main.
//
//go:embed main.go.txt
var Main []byte
