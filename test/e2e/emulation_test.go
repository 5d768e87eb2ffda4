// SPDX-License-Identifier: Apache-2.0

// Older releases of Kubernetes, which devcluster's API server emulates.

package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

// TestTheManifestsInstallTheControllerOnAnOldKubernetes tests the installation on the
// oldest release that devcluster emulates. "make skew" runs all tests on each release.
func TestTheManifestsInstallTheControllerOnAnOldKubernetes(t *testing.T) {
	t.Parallel()
	oldest := oldestEmulated(t)
	s := newSite(newOwnCluster(t, "-nodes=2", "-emulated-version="+oldest))
	if s.emulates != oldest {
		t.Errorf("The API server emulates %q, want %s", s.emulates, oldest)
	}
	s.checkInstallation(t, deployFolder, "yes\n")
}

// oldestEmulated returns the oldest release of Kubernetes that devcluster can emulate.
func oldestEmulated(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), needsDevclusterProgram(t), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(out), "\nEmulates ")
	versions := strings.Fields(list)
	if len(versions) == 0 {
		t.Fatalf("devcluster version names no release that it can emulate:\n%s", out)
	}
	return versions[0]
}

// emulatedBy returns the minor version that an API server emulates, or "" if none.
func emulatedBy(server *version.Info) string {
	if server.EmulationMajor == "" || server.EmulationMajor == server.Major && server.EmulationMinor == server.Minor {
		return ""
	}
	return server.EmulationMajor + "." + server.EmulationMinor
}
