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

// The tests that an added kind gets copies of.

package main

import (
	"regexp"
	"strings"
)

// image matches the field of a Config that only the first kind has.
var image = regexp.MustCompile(`, Image: [a-zA-Z.]+`)

// ownerOfWorld matches the Foo of a footest.FuzzWorld.
var ownerOfWorld = regexp.MustCompile(`\b(w|fuzzed|live)\.Foo\b`)

// forOwner returns a test file that asks a footest.OwnerRow for the kinds of children.
func (w *kindWriter) forOwner(text string) string {
	text = ownerOfWorld.ReplaceAllString(text, "$1.Subject()")
	text = strings.NewReplacer("preview.Table(footest.DefaultImage)", "preview.Table()", "*footest.FuzzWorld", "*footest.FuzzWorldOf[*samplev1alpha1.Foo]",
		"footest.NewFuzzWorld(", "footest.NewFuzzWorldOf[*samplev1alpha1.Foo](", "rowOf(shipped)", "rowOf("+w.child.Kind+"())", "footest.FooKind", "footest.FooOwner.Kind", "footest.Kinds", "footest.FooOwner.Kinds", "footest.Primary", "footest.FooOwner.Kinds[0]").Replace(text)
	return image.ReplaceAllString(text, "")
}
