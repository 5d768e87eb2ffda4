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

// Package waiters checks what tools that wait for Foos make of a status: kstatus, by which
// Helm 4, Flux and kpt go, and the health check for Argo CD in artifacts/argocd. Neither
// may take a Foo for ready before the controller has carried out its newest spec.
//
//	go test -count=1 .
//
// Use -count=1, because go test does not notice changes of files outside of the module.
package waiters
