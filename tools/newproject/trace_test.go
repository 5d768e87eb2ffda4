// SPDX-License-Identifier: Apache-2.0

// Tests of the search for traces.

package main

import "testing"

func TestTraces(t *testing.T) {
	for line, want := range map[string]bool{
		"a Foo": true, "foos": true, "newFoo": true, "FOO": true, "foo_bar": true, "fooinformers": true, "foolisters": true, "typedfoo": true,
		"samplecontroller.k8s.io": true, "SampleController": true, "sample_controller": true, "The Sample Controller Authors": true, "samplev1alpha1": true,
		"example.com/sample-controller/pkg": true, "com.example.sample-controller": true, "kubernetes/sample-controller": true, "footest": true,
		"a FoodTruck": false, "food for a footprint": false, "type of condition in CamelCase or in foo.example.com/CamelCase.": false,
		"a sample of a controller": false, "registry.example.com/team/widgets": false,
	} {
		got := findTraces([]treeFile{{path: "a", data: []byte("first\n" + line + "\n")}}, widget)
		if len(got) > 0 != want {
			t.Errorf("%q: got %v", line, got)
		}
		if want && len(got) == 1 && (got[0].line != 2 || got[0].file != "a") {
			t.Errorf("%q: found in %s:%d, want a:2", line, got[0].file, got[0].line)
		}
	}
}

// TestChosenNamesAreNoTrace uses names that look like the old ones.
func TestChosenNamesAreNoTrace(t *testing.T) {
	for line, want := range map[string]bool{
		"FooBar, foobars, newFooBar and NewFooBars": false, "github.com/acme/foo-controller, foo_controller_foobars": false, "samplecontroller.acme.dev/v1": false,
		"foo":                           true,
		"example.com/sample-controller": true,
		"FooBar and Foo":                true,
		"foos of samplecontroller.dev":  true,
	} {
		if got := findTraces([]treeFile{{path: "a", data: []byte(line)}}, bar); len(got) > 0 != want {
			t.Errorf("%q: got %v", line, got)
		}
	}
	for _, line := range []string{"foodtruck", "FoodTrucks", "example-foodtruck-1", "newFoodTruck", "foodTrucksDeployment", "fakefoodv1alpha1"} {
		if got := findTraces([]treeFile{{path: line, data: []byte(line)}}, truck); len(got) > 0 {
			t.Errorf("%q: got %v", line, got)
		}
	}
}

func TestTracesInPathsAndOtherFiles(t *testing.T) {
	got := findTraces([]treeFile{{path: "docs/foo.md"}, {path: "go.sum", data: []byte("foo")}, {path: "image", data: []byte("foo\x00")}}, widget)
	if len(got) != 1 || got[0].file != "docs/foo.md" {
		t.Errorf("got %v, want only docs/foo.md", got)
	}
}
