// SPDX-License-Identifier: Apache-2.0

// The versions of Kubernetes that the components can emulate.

package cluster

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
)

// majorMinor is the format of a version to emulate. The components accept no patch
// version.
var majorMinor = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// EmulatedVersions returns the minor versions of Kubernetes that the components can
// emulate, from the oldest to their own.
func EmulatedVersions() []string {
	// Kubernetes publishes no list and no lower limit, only whether a version is valid.
	// The components use the same check.
	effective := compatibility.DefaultBuildEffectiveVersion()
	candidate := version.MajorMinor(effective.BinaryVersion().Major(), effective.BinaryVersion().Minor())
	var versions []string
	for {
		effective.SetEmulationVersion(candidate)
		if len(effective.Validate()) > 0 {
			break
		}
		versions = append(versions, candidate.String())
		if candidate.Minor() == 0 {
			break
		}
		candidate = candidate.SubtractMinor(1)
	}
	slices.Reverse(versions)
	return versions
}

// checkEmulatedVersion returns an error for an invalid version. "" means none.
func checkEmulatedVersion(wanted string) error {
	if wanted == "" {
		return nil
	}
	if !majorMinor.MatchString(wanted) {
		return fmt.Errorf("-%s %s: not MAJOR.MINOR, such as 1.35", flagEmulatedVersion, wanted)
	}
	if versions := EmulatedVersions(); !slices.Contains(versions, wanted) {
		return fmt.Errorf("-%s %s: out of range, the components can emulate %s to %s", flagEmulatedVersion, wanted, versions[0], versions[len(versions)-1])
	}
	return nil
}
