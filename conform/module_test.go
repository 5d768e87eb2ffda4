// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// publish adds a module to the folder of a module proxy.
func publish(t *testing.T, folder, module, version string, files map[string]string) {
	versions := filepath.Join(folder, module, "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	archive := zip.NewWriter(&content)
	for name, text := range files {
		file, err := archive.Create(module + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	for ending, text := range map[string]string{".info": `{"Version":"` + version + `"}`, ".mod": files["go.mod"], ".zip": content.String()} {
		if err := os.WriteFile(filepath.Join(versions, version+ending), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAModuleIsDownloadedAndItsProgramIsBuilt(t *testing.T) {
	const version = "v1.2.3"
	proxy := t.TempDir()
	t.Setenv("GOPROXY", "file://"+proxy)
	publish(t, proxy, "other.example/api", version, map[string]string{
		"go.mod": "module other.example/api\n\ngo 1.24\n",
		"api.go": "package api\n\nconst Text = \"the root runs\"\n",
	})
	publish(t, proxy, "other.example/controller", version, map[string]string{
		"go.mod": "module other.example/controller\n\ngo 1.24\n\nrequire other.example/api v1.2.3\n\n" +
			"replace other.example/api => ./api // not in the module\n",
		"crds/a.yaml":  "kind: A\n",
		"cmd/a/a.go":   "package main\n\nfunc main() { println(\"it runs\") }\n",
		"main.go":      "package main\n\nimport \"other.example/api\"\n\nfunc main() { println(api.Text) }\n",
		"sample/a.yml": "kind: A\n",
	})
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw") // so that the test can remove it
	t.Setenv("GONOSUMDB", "other.example")
	t.Chdir(t.TempDir())
	settings := "module: other.example/controller@" + version + "\ncrds: [$(MODULE)/crds, own]\nobjects: [$(MODULE)/sample/a.yml]\n"
	for program, want := range map[string]string{"$(MODULE)/cmd/a": "it runs\n", "$(MODULE)": "the root runs\n"} {
		if err := os.WriteFile("settings.yaml", []byte(settings+"program: ["+program+", -flag]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := &runner{folder: t.TempDir()}
		if err := r.parse([]string{"-settings", "settings.yaml"}); err != nil {
			t.Fatal(err)
		}
		if err := r.useModule(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{r.crds[0] + "/a.yaml", r.objects[0]} {
			if content, err := os.ReadFile(file); string(content) != "kind: A\n" {
				t.Errorf("%s has %q (%v)", file, content, err)
			}
		}
		output, err := exec.Command(r.args[0], r.args[1:]...).CombinedOutput()
		if err != nil || string(output) != want || r.crds[1] != "own" {
			t.Errorf("%s printed %q (%v), and the other definitions are %s", program, output, err, r.crds[1])
		}
	}
}

func TestAModuleThatIsNotThereIsAnErrorThatNamesIt(t *testing.T) {
	t.Setenv("GOPROXY", "file://"+t.TempDir())
	t.Setenv("GOMODCACHE", t.TempDir())
	r := &runner{settings: &settings{Module: "other.example/controller@v1.0.0"}, folder: t.TempDir()}
	err := r.useModule(t.Context())
	if err == nil || !strings.Contains(err.Error(), "other.example/controller@v1.0.0: ") {
		t.Errorf("got %v", err)
	}
}
