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
