// SPDX-License-Identifier: Apache-2.0

// The rules for module paths.

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	modHost    = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*\.[a-z0-9.-]*[a-z0-9-]$`)
	modElement = regexp.MustCompile(`^([A-Za-z0-9_~-]|[A-Za-z0-9_~-][A-Za-z0-9._~-]*[A-Za-z0-9_~-])$`)
	// A last element that is a major version, and its valid values: v0 and v1 are never
	// written.
	modMajor     = regexp.MustCompile(`^(.+)/(v[0-9.]+)$`)
	majorVersion = regexp.MustCompile(`^v([2-9]|[1-9][0-9]+)$`)
	// The end of a short file name on Windows, as in "longna~1".
	shortFile = regexp.MustCompile(`~[0-9]+$`)
)

// windowsDevices are the names that no file can have on Windows, with any extension.
var windowsDevices = strings.Fields("con prn aux nul com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9")

// splitMajor splits a module's path before the element with its major version. major is
// empty if there is none.
func splitMajor(path string) (prefix, major string) {
	match := modMajor.FindStringSubmatch(path)
	if match == nil {
		return path, ""
	}
	return match[1], match[2]
}

// checkModulePath returns an error if the go command would not accept the path for a
// module that others can fetch (go.dev/ref/mod#go-mod-file-ident). It does not check the
// rules for gopkg.in.
func checkModulePath(path string) error {
	elements := strings.Split(path, "/")
	if !modHost.MatchString(elements[0]) {
		return fmt.Errorf("its first element, %q, is not a domain: lower-case letters, digits, dashes and at least one dot", elements[0])
	}
	for _, element := range elements {
		stem, _, _ := strings.Cut(element, ".")
		switch {
		case element == "":
			return errors.New("it has an empty element")
		case !modElement.MatchString(element):
			return fmt.Errorf("%q has something other than letters, digits, -, _, ~ and dots, or a dot at its beginning or end", element)
		case slices.Contains(windowsDevices, strings.ToLower(stem)):
			return fmt.Errorf("%q is the name of a device on Windows", element)
		case shortFile.MatchString(stem):
			return fmt.Errorf("%q could be the short name of another file on Windows", element)
		}
	}
	if _, major := splitMajor(path); major != "" && !majorVersion.MatchString(major) {
		return fmt.Errorf("%s is not a valid major version at the end of a path: use v2, v3 and so on", major)
	}
	return nil
}
