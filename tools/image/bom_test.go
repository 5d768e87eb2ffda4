// SPDX-License-Identifier: Apache-2.0

// Tests of the bill of materials.

package main

import (
	"bytes"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func readBOM(t *testing.T, text []byte) cyclonedx.BOM {
	t.Helper()
	var bom cyclonedx.BOM
	must(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	return bom
}

func TestBOMListsTheLinkedModules(t *testing.T) {
	text, err := bomOf(programFor("amd64"))
	must(t, err)
	bom := readBOM(t, text)
	main := bom.Metadata.Component
	if main.Name != "example.com/sample-controller" || main.Version != "v1.2.3" || main.Type != cyclonedx.ComponentTypeApplication {
		t.Errorf("it describes %+v", main)
	}
	if bom.Metadata.Timestamp != commitTime {
		t.Errorf("its time is %s, want the commit's", bom.Metadata.Timestamp)
	}
	want := []string{
		"pkg:golang/stdlib@1.26.0",
		"pkg:golang/example.com/one@v1.0.0%2Bincompatible",
		"pkg:golang/example.com/fork@v2.0.1", // replaces example.com/two
	}
	for i, component := range *bom.Components {
		if component.PackageURL != want[i] {
			t.Errorf("component %d is %s, want %s", i, component.PackageURL, want[i])
		}
		if needed := (*(*bom.Dependencies)[0].Dependencies)[i]; needed != component.BOMRef {
			t.Errorf("the program needs %s, which is not the component's reference", needed)
		}
	}
	if len(*bom.Components) != len(want) {
		t.Errorf("%d components", len(*bom.Components))
	}
	// go.sum has the same 32 bytes in base64.
	const sum = "1b8b7d446a0f0db40c2f7f21cff91042296db6d81ddde820d8e0c247c688736a"
	if hashes := (*bom.Components)[1].Hashes; hashes == nil || (*hashes)[0].Value != sum {
		t.Errorf("example.com/one has the hashes %v", hashes)
	}
}

func TestBOMWithoutGit(t *testing.T) {
	text, err := bomOf(withoutGit(programFor("amd64")))
	must(t, err)
	bom := readBOM(t, text)
	if main := bom.Metadata.Component; main.PackageURL != "pkg:golang/example.com/sample-controller" || main.Version != "" {
		t.Errorf("it describes %+v", main)
	}
	if bom.Metadata.Timestamp != "" {
		t.Errorf("its time is %s", bom.Metadata.Timestamp)
	}
}
