/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package vulnerabilities tests check.sh, with databases and a program of its own.
package vulnerabilities

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// database is what https://vuln.go.dev has, with one vulnerability: of strings.ToUpper.
var database = map[string]string{
	"index/db.json":      `{"modified":"2026-01-02T03:04:05Z"}`,
	"index/modules.json": `[{"path":"stdlib","vulns":[{"id":"GO-2026-9999","modified":"2026-01-02T03:04:05Z"}]}]`,
	"ID/GO-2026-9999.json": `{"schema_version":"1.3.1","id":"GO-2026-9999","modified":"2026-01-02T03:04:05Z","details":"of a test","database_specific":{"url":"https://example.com"},"affected":[
		{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
		"ecosystem_specific":{"imports":[{"path":"strings","symbols":["ToUpper"]}]}}]}`,
}

func TestCheck(t *testing.T) {
	whole := slices.Collect(maps.Keys(database))
	for name, row := range map[string]struct {
		calls   string
		files   []string // of the database
		status  int
		printed string
	}{
		"a vulnerability":  {"ToUpper", whole, 3, "GO-2026-9999"},
		"none":             {"ToLower", whole, 0, "affected by 0 vulnerabilities"},
		"no database":      {"ToLower", nil, 75, "is not known"},
		"a broken network": {"ToLower", []string{"index/db.json", "index/modules.json"}, 75, "is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "x/go.mod", "module example.com/x\n\ngo 1.26.0\n")
			write(t, folder, "x/main.go", "package main\n\nimport \"strings\"\n\nfunc main() { println(strings."+row.calls+"(\"x\")) }\n")
			for _, file := range row.files {
				write(t, folder, "database/"+file, database[file])
			}
			command := exec.CommandContext(t.Context(), "./check.sh", filepath.Join(folder, "x"))
			command.Env = append(os.Environ(), "VULNERABILITY_DATABASE=file://"+folder+"/database")
			printed, err := command.CombinedOutput()
			status := 0
			if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
				status = failed.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if status != row.status || !strings.Contains(string(printed), row.printed) {
				t.Errorf("status %d, want %d with %q:\n%s", status, row.status, row.printed, printed)
			}
		})
	}
}

func write(t *testing.T, folder, file, text string) {
	t.Helper()
	path := filepath.Join(folder, file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
