// SPDX-License-Identifier: Apache-2.0

// Package crd has the CustomResourceDefinitions of this build.
package crd

import "embed"

// Files are the CustomResourceDefinitions as YAML, and the kustomization.yaml that lists them.
//
//go:embed *.yaml
var Files embed.FS
