// SPDX-License-Identifier: Apache-2.0

// Package names holds the names of this program that main.go and the tools share.
package names

const (
	// Controller names the program itself, its work queue and informers, the source
	// of its Events, the field manager of its writes, its metrics and, by default, its Lease.
	Controller = "sample-controller"
	// Purpose follows the name of the program at the top of its help.
	Purpose = "reconciles the Foos of a cluster: it creates a Deployment for each."
	// Kind names the first of its kinds in the help and the metrics.
	Kind = "Foo"
	// Plural is the plural of Kind.
	Plural = "Foos"
	// DefaultImage is the image of a Foo's Pods if -image is not set.
	DefaultImage = "nginx:latest"
)
