// SPDX-License-Identifier: Apache-2.0

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
