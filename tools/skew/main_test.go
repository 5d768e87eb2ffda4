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

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeDevcluster emulates three versions; the older it is, the less it has.
const fakeDevcluster = `#!/bin/sh
case "$1 $2" in
"version ") printf 'Kubernetes  v1.37.0\nEmulates    1.35 1.36 1.37\n' ;;
"run -emulated-version=1.37") printf 'kubernetes_feature_enabled{name="CRDNew",stage=""} 1\n' ;;
esac
case "$1" in
run) printf 'kubernetes_feature_enabled{name="Old",stage=""} 1\npods   po   v1   true   Pod\n' ;;
esac
`

// fakeCheck has a test that fails on 1.35.
const fakeCheck = `#!/bin/sh
test "$1 $GO_TEST_FLAGS" = "e2e -json" || exit 3
echo '{"Action":"pass","Test":"TestA"}'
if test "$EMULATED_VERSION" = 1.35; then
  echo '{"Action":"fail","Test":"TestB"}'
  exit 1
fi
echo '{"Action":"pass","Test":"TestB"}'
`

// tree is a repository with nothing but these programs and the document.
func tree(t *testing.T) (document string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"bin/devcluster": fakeDevcluster, "hack/check.sh": fakeCheck, "docs/operations.md": begin + end} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o700); err != nil { //nolint:gosec // two are programs
			t.Fatal(err)
		}
	}
	return "docs/operations.md"
}

func TestARunGoesOnAfterAFailureAndSaysSo(t *testing.T) {
	document := tree(t)
	var out strings.Builder
	err := run(nil, &out)
	if err == nil || err.Error() != "tests failed on 1 of 3 Kubernetes" {
		t.Errorf("the error is %v", err)
	}
	written, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	when := "v1.37.0, " + time.Now().UTC().Format(time.DateOnly)
	want := begin + columns +
		"| 1.35 | 1 | 1: TestB | 0 | resources: none; features: 1, among them CRDNew | " + when + " |\n" +
		"| 1.36 | 2 | 0 | 0 | resources: none; features: 1, among them CRDNew | " + when + " |\n" +
		"| 1.37 | 2 | 0 | 0 | nothing | " + when + " |\n" + end
	if string(written) != want {
		t.Errorf("the document is\n%s\nwant\n%s", written, want)
	}
	for _, line := range []string{"1.35: FAIL: TestB\n", "1.35: 1 passed, 1 failed, 0 skipped in ", "1.37: 2 passed, 0 failed, 0 skipped in "} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not said:\n%s", line, &out)
		}
	}
}

func TestOnlyWhatIsWantedIsRun(t *testing.T) {
	document := tree(t)
	if err := run([]string{"-minors=1.36"}, new(strings.Builder)); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(written); !strings.Contains(text, "\n| 1.36 |") || strings.Contains(text, "\n| 1.35 |") {
		t.Errorf("the document is\n%s", text)
	}
	for _, minors := range []string{"1.34", "1.36,", "1.36,1.38"} {
		if err := run([]string{"-minors=" + minors}, new(strings.Builder)); err == nil || !strings.HasPrefix(err.Error(), "-minors: devcluster can't emulate ") {
			t.Errorf("-minors=%s: %v", minors, err)
		}
	}
}
