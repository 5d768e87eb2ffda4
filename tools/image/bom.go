// SPDX-License-Identifier: Apache-2.0

// The bill of materials of a program, as CycloneDX.

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// bomType is the media type of a bill of materials.
const bomType = "application/vnd.cyclonedx+json"

// bomFile returns the name of the file with a program's bill of materials.
func bomFile(p *program) string {
	return fmt.Sprintf("%s_%s_%s.cdx.json", programName, p.platform.OS, p.platform.Architecture)
}

// bomOf lists the modules in the program, as CycloneDX JSON: those that the go command
// linked, not all that go.mod names. The document has no serial number, because the
// number would have to differ each time.
func bomOf(p *program) ([]byte, error) {
	bom := cyclonedx.NewBOM()
	sum := sha256.Sum256(p.content)
	main := component(cyclonedx.ComponentTypeApplication, &p.info.Main)
	main.Version = p.version()
	main.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	main.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: license}}}
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	if committed := p.committed(); !committed.IsZero() {
		bom.Metadata.Timestamp = committed.Format(time.RFC3339)
	}
	components := []cyclonedx.Component{standardLibrary(p.info.GoVersion)}
	for _, module := range p.info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, component(cyclonedx.ComponentTypeLibrary, module))
	}
	bom.Components = &components
	// The build information lists the modules, but not which of them imports which.
	var all []string
	for _, part := range components {
		all = append(all, part.BOMRef)
	}
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &all}}
	var text bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	// Not the newest version, because scanners support it only after a while.
	err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return text.Bytes(), err
}

// component describes a module. Its reference is the module's package URL.
func component(kind cyclonedx.ComponentType, module *debug.Module) cyclonedx.Component {
	url := packageURL(module.Path, module.Version)
	described := cyclonedx.Component{BOMRef: url, Type: kind, Name: module.Path, Version: module.Version, PackageURL: url}
	// The hash in go.sum is the SHA-256 of a list of the module's files.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) == sha256.Size {
		described.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return described
}

// standardLibrary describes Go's standard library, under the name in the databases of
// vulnerabilities.
func standardLibrary(release string) cyclonedx.Component {
	// The release may be "go1.26.0 X:experiment".
	release, _, _ = strings.Cut(release, " ")
	return component(cyclonedx.ComponentTypeLibrary, &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(release, "go")})
}

// packageURL returns the module's package URL (purl). It escapes a plus, as in
// v1.0.0+incompatible, because readers take a plus for a space.
func packageURL(path, version string) string {
	url := "pkg:golang/" + path
	if version != "" && version != "(devel)" {
		url += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	return url
}
