// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnlyTheProjectsVersionIsRenamed renames versions of the project and of others.
func TestOnlyTheProjectsVersionIsRenamed(t *testing.T) {
	a := &versionAdder{names: deriveNames(request{Module: "github.com/acme/widgets", Group: "my-team.acme.dev", Version: "v1alpha1", Kind: "Widget"}), to: "v1beta1"}
	for text, want := range map[string]string{
		`myteamv1alpha1 "github.com/acme/widgets/pkg/apis/myteam/v1alpha1"`: `myteamv1beta1 "github.com/acme/widgets/pkg/apis/myteam/v1beta1"`,
		"client.MyTeamV1alpha1().Widgets(namespace)":                        "client.MyTeamV1beta1().Widgets(namespace)",
		"informers.MyTeam().V1alpha1().Widgets()":                           "informers.MyTeam().V1beta1().Widgets()",
		"apiVersion: my-team.acme.dev/v1alpha1":                             "apiVersion: my-team.acme.dev/v1beta1",
		"apiVersion: other.example.com/v1alpha1":                            "apiVersion: other.example.com/v1alpha1",
		`admissionv1alpha1 "k8s.io/api/admission/v1alpha1"`:                 `admissionv1alpha1 "k8s.io/api/admission/v1alpha1"`,
		"package v1alpha1": "package v1beta1",
	} {
		if got := replaceAll(text, a.replacements()); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

func TestVersionsThatCannotBeAdded(t *testing.T) {
	f := newSource(t)
	check := func(version, want string) {
		t.Helper()
		err := (&versionAdder{names: sample, dir: f.source, to: version}).check(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %q", version, err, want)
		}
	}
	f.write(f.source, "pkg/apis/samplecontroller/v1alpha1/types.go", "package v1alpha1\n")
	check("v1alpha1", "newer version than v1alpha1")
	check("beta", "newer version")
	check("v1beta1", "")
	f.write(f.source, "pkg/apis/samplecontroller/v1/types.go", "package v1\n")
	check("v2", "has 2 versions")
	f.write(f.source, "foo.txt", "changed\n")
	check("v1beta1", "has uncommitted changes")
}

// TestOnlyTheProjectAdmitsBothVersions: the state that newproject generated has the new one
// alone, as each later update generates it. Otherwise an update would shut out the old release
// during a migration.
func TestOnlyTheProjectAdmitsBothVersions(t *testing.T) {
	f := newSource(t)
	const policy, types = "artifacts/deploy/permissions/policy.yaml", "pkg/apis/samplecontroller/v1alpha1/types.go"
	f.write(f.source, types, "// +genclient\n")
	f.write(f.source, policy, "['samplecontroller.k8s.io/v1alpha1']\n")
	f.commit(f.source)
	for _, step := range []struct {
		do   func(*versionAdder) error
		want string
	}{
		{func(a *versionAdder) error { return a.rewrite(t.Context()) }, "['samplecontroller.k8s.io/v1beta1']\n"},
		{func(a *versionAdder) error { return a.keepOld(t.Context()) }, "['samplecontroller.k8s.io/v1beta1', 'samplecontroller.k8s.io/v1alpha1']\n"},
	} {
		if err := step.do(&versionAdder{names: sample, dir: f.source, to: "v1beta1"}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(f.source, policy)); string(got) != step.want {
			t.Errorf("the policy is %q, want %q (%v)", got, step.want, err)
		}
	}
}
