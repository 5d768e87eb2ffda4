// SPDX-License-Identifier: Apache-2.0

// Package names holds the names of this program that main.go and the tools share.
package names

const (
	// Controller names the program itself, its work queue and informers, the source
	// of its Events, the field manager of its writes, its metrics and, by default, its Lease.
	Controller = "sample-controller"
	// DefaultImage is the image of a Foo's Pods if -image is not set.
	DefaultImage = "nginx:latest"
)
