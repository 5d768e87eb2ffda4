// SPDX-License-Identifier: Apache-2.0

// Package names holds the name of this program.
package names

// Controller names the program itself, its work queue and informers, the source
// of its Events, the field manager of its writes and, by default, its Lease.
const Controller = "sample-controller"
