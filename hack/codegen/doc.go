/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package codegen pins the generators that hack/codegen.sh runs, and tests
// hack/update-codegen.sh and hack/verify-codegen.sh. Each test works on a copy of the
// tree: it reads the tree and never writes to it. The program in the folder versions is
// part of these scripts.
//
// Generating everything takes about 15 s on two cores. Therefore one test makes many
// changes in one copy, and the tests of failures break what the scripts read first.
package codegen

// The import keeps k8s.io/code-generator, the module of kube_codegen.sh, in go.mod.
import _ "k8s.io/code-generator"
