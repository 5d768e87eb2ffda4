// SPDX-License-Identifier: Apache-2.0

// Package claims checks the documents against the code, and their words.
package claims

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const moduleRoot = "../.."

// testName matches a test, or a check of the end-to-end tests, as a document names it.
var testName = regexp.MustCompile("`((?:Test|Fuzz|check)[A-Z][A-Za-z0-9]*)`")

// placed matches a test together with its directory.
var placed = regexp.MustCompile("(root package|internal/[a-z]+|pkg/apis|pkg/(?:process|reconcile)/[a-z]+|test/[a-z]+) `((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")

// endToEnd matches the list of end-to-end tests of a case.
var endToEnd = regexp.MustCompile("e2e [^;|)]*")

// faultRow matches a row of docs/faults.md, as the contract names it.
var faultRow = regexp.MustCompile(`faults ([A-G][0-9]+)((?:, [A-G][0-9]+)*)`)

// row matches a row of the contract's tables of cases.
var row = regexp.MustCompile(`(?m)^\| ([BC][0-9]+) \|.*$`)

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{moduleRoot}, path...)...))
	return string(must(t, text, err))
}

// must ends the test if there is an error, and returns the value if not.
func must[T any](t *testing.T, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// glob returns the files that match a pattern below the root. There must be one.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(moduleRoot, pattern))
	if len(files) == 0 {
		t.Fatalf("no file matches %s (%v)", pattern, err)
	}
	return files
}

// TestTestsInDocumentsExist looks for each test that a document names, and for those whose
// directory it names, there.
func TestTestsInDocumentsExist(t *testing.T) {
	existing := testsIn(t, ".", "test/*", "internal/*", "pkg/apis/*/*", "pkg/process/*", "pkg/reconcile/*", "tools/*/test")
	for _, document := range glob(t, "docs/*.md") {
		document = filepath.Base(document)
		text := read(t, "docs", document)
		for _, match := range testName.FindAllStringSubmatch(text, -1) {
			if !existing[match[1]] {
				t.Errorf("docs/%s names %s, which is not in the root package, test/, internal/, pkg/ or the tests of tools/", document, match[1])
			}
		}
		for _, match := range placed.FindAllStringSubmatch(text, -1) {
			folder := strings.NewReplacer("root package", ".", "pkg/apis", "pkg/apis/*/*").Replace(match[1])
			if !testsIn(t, folder)[match[2]] {
				t.Errorf("docs/%s says that %s is in %s: it is not", document, match[2], match[1])
			}
		}
	}
	// In the contract, a unit test without a directory is in the root package, internal/, pkg/process/ or pkg/reconcile/.
	rest := placed.ReplaceAllString(endToEnd.ReplaceAllString(read(t, "docs", "contract.md"), ""), "")
	root := testsIn(t, ".", "internal/*", "pkg/process/*", "pkg/reconcile/*")
	for _, match := range testName.FindAllStringSubmatch(rest, -1) {
		if !strings.HasPrefix(match[1], "check") && !root[match[1]] {
			t.Errorf("docs/contract.md does not say in which folder %s is", match[1])
		}
	}
}

func TestEachCaseOfTheContractHasATest(t *testing.T) {
	rows := row.FindAllStringSubmatch(read(t, "docs", "contract.md"), -1)
	if len(rows) == 0 {
		t.Fatal("found no cases in the contract")
	}
	for _, match := range rows {
		if !testName.MatchString(match[0]) {
			t.Errorf("docs/contract.md names no test for case %s", match[1])
		}
	}
}

func TestRowsOfFaultsExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(moduleRoot, "docs", "faults.md"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this project has no matrix of faults")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range faultRow.FindAllStringSubmatch(read(t, "docs", "contract.md"), -1) {
		for name := range strings.SplitSeq(match[1]+match[2], ", ") {
			if !strings.Contains(string(page), "\n| "+name+" | ") {
				t.Errorf("docs/contract.md names row %s of the faults, which docs/faults.md does not have", name)
			}
		}
	}
}

// testsIn returns the functions in the test files of some directories.
func testsIn(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(moduleRoot, folder, "*_test.go"))
		for _, file := range must(t, files, err) {
			maps.Copy(names, declaredIn(t, file))
		}
	}
	return names
}

// declared matches the name of a function, a method or a type.
var declared = regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type )(\w+)`)

// declaredIn returns the names of a file's functions, methods and types.
func declaredIn(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	names := map[string]bool{}
	for _, match := range declared.FindAllStringSubmatch(string(must(t, text, err)), -1) {
		names[match[1]] = true
	}
	return names
}

// requirement matches a row of the table: a module, and why it is required.
var requirement = regexp.MustCompile("(?m)^\\| `([^` ]+)` \\| (.*) \\|$")

// TestRootModuleRequiresWhatIsAgreed compares the table with go.mod, because every
// program that imports the clients also gets the root module's requirements.
func TestRootModuleRequiresWhatIsAgreed(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "\n## Dependencies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	agreed := map[string]string{}
	for _, match := range requirement.FindAllStringSubmatch(section, -1) {
		agreed[match[1]] = match[2]
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(goCommand(t, "mod", "edit", "-json")), &file); err != nil {
		t.Fatal(err)
	}
	for _, require := range file.Require {
		if _, ok := agreed[require.Path]; !ok && !require.Indirect {
			t.Errorf("go.mod requires %s, which is not in the table of CONTRIBUTING.md#dependencies: do without it, use it in a nested module, or add the reason to the table", require.Path)
		}
		if !require.Indirect {
			delete(agreed, require.Path)
		}
	}
	for path := range agreed {
		t.Errorf("CONTRIBUTING.md#dependencies has %s, which go.mod does not require", path)
	}
}
