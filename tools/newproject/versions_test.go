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
	dir := t.TempDir()
	git := func(arguments ...string) {
		if _, err := git(t.Context(), dir, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "pkg/apis/samplecontroller/v1alpha1"), 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "--quiet")
	for version, message := range map[string]string{"v1alpha1": "newer version than v1alpha1", "beta": "newer version", "v1beta1": ""} {
		err := (&versionAdder{names: sample, dir: dir, to: version}).check(t.Context())
		if message == "" && err != nil || message != "" && (err == nil || !strings.Contains(err.Error(), message)) {
			t.Errorf("%s: got the error %v, want %q", version, err, message)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "pkg/apis/samplecontroller/v1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (&versionAdder{names: sample, dir: dir, to: "v2"}).check(t.Context()); err == nil || !strings.Contains(err.Error(), "has 2 versions") {
		t.Errorf("a third version: got the error %v", err)
	}
}
