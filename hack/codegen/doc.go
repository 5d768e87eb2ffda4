// SPDX-License-Identifier: Apache-2.0

// Package codegen pins the generators that hack/codegen.sh runs, and tests
// hack/update-codegen.sh and hack/verify-codegen.sh. Each test works on a copy of the
// tree: it reads the tree and never writes to it.
//
// Generating everything takes about 15 s on two cores. Therefore one test makes many
// changes in one copy, and the tests of failures break what the scripts read first.
package codegen

// The import keeps k8s.io/code-generator, the module of kube_codegen.sh, in go.mod.
import _ "k8s.io/code-generator"
