// SPDX-License-Identifier: Apache-2.0

// Tests of Tail.

package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	for _, test := range []struct {
		name, content string
		want          []string
	}{
		{"nothing", "", nil},
		{"fewer lines than requested", "a\nb\n", []string{"a", "b"}},
		{"more lines", "a\nb\nc\nd\n", []string{"b", "c", "d"}},
		{"a last line without a line end", "a\nb\nc\nd", []string{"b", "c", "d"}},
		{"empty lines between", "a\n\nc\n", []string{"a", "", "c"}},
		{"more than is read", strings.Repeat("x", tailBytes) + "\nb\nc\nd\n", []string{"b", "c", "d"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Tail(path, 3)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
