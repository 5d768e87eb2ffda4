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

// Package fuzz holds the CustomResourceDefinition against the typed client: what
// the API server accepts, the client can read, and the bounds that types.go
// states are the ones that the API server holds.
//
//	go test -count=1 .
//	go test -fuzz=FuzzAcceptedFooIsRead .
//
// With -count=1, because go test does not know that a file outside of the
// module, the definition, has changed. The API server is here as a
// library: the code by which it reads, prunes and validates a custom resource.
package fuzz
