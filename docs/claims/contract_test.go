// SPDX-License-Identifier: Apache-2.0

// Package claims checks the documents against the code and each other.
package claims

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const moduleRoot = "../.."

var (
	// testName matches a test, or a check of the end-to-end tests, as a document names it.
	testName = regexp.MustCompile("`((?:Test|Fuzz|check)[A-Z][A-Za-z0-9]*)`")
	// placed matches a test together with its directory.
	placed = regexp.MustCompile("(root package|internal/[a-z]+|pkg/apis|pkg/(?:process|reconcile)/[a-z]+|test/[a-z/]+) `((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	// faultRow matches a row of docs/faults.md, as the contract names it.
	faultRow = regexp.MustCompile(`faults ([A-G][0-9]+)((?:, [A-G][0-9]+)*)`)
	// row matches a row of the contract's tables of cases.
	row = regexp.MustCompile(`(?m)^\| ([BC][0-9]+) \|.*$`)
	// declared matches the name of a function, a method or a type.
	declared = regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type )(\w+)`)
	// requirement matches a row of the table of dependencies: a module, and why it is required.
	requirement = regexp.MustCompile("(?m)^\\| `([^` ]+)` \\| .* \\|$")
)

// read returns a file's text; a path that is not absolute is seen from the root.
func read(t *testing.T, path string) string {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(moduleRoot, path)
	}
	text, err := os.ReadFile(path)
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

// run runs a command in the root of the repository, and returns what it prints.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Env = moduleRoot, append(os.Environ(), "GOWORK=off")
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, "go", args...)
	return must(t, out, err)
}

// tracked returns the files that git tracks and that match one of the patterns.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	files, err := run(t, "git", append([]string{"ls-files"}, patterns...)...)
	return strings.Fields(must(t, files, err))
}

// declaredIn returns the names of the functions, methods and types in files.
func declaredIn(t *testing.T, files ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range files {
		for _, match := range declared.FindAllStringSubmatch(read(t, file), -1) {
			names[match[1]] = true
		}
	}
	return names
}

// TestTestsInDocumentsExist looks for each test that a document names, and for those whose
// directory it names, there.
func TestTestsInDocumentsExist(t *testing.T) {
	existing := declaredIn(t, tracked(t, "*_test.go", "test/looptest/*.go")...)
	for _, document := range tracked(t, ":(glob)docs/*.md") {
		text := read(t, document)
		for _, match := range testName.FindAllStringSubmatch(text, -1) {
			if !existing[match[1]] {
				t.Errorf("%s names %s, which does not exist", document, match[1])
			}
		}
		for _, match := range placed.FindAllStringSubmatch(text, -1) {
			folder := strings.NewReplacer("root package", ".", "pkg/apis", "pkg/apis/*/*").Replace(match[1])
			if !declaredIn(t, tracked(t, ":(glob)"+filepath.Join(folder, "*_test.go"))...)[match[2]] {
				t.Errorf("%s says that %s is in %s: it is not", document, match[2], match[1])
			}
		}
	}
}

// TestEachCaseOfTheContractHasATest also looks for the rows of docs/faults.md that it names.
func TestEachCaseOfTheContractHasATest(t *testing.T) {
	contract, faults := read(t, "docs/contract.md"), read(t, "docs/faults.md")
	cases := row.FindAllStringSubmatch(contract, -1)
	if len(cases) == 0 {
		t.Fatal("found no cases in the contract")
	}
	for _, match := range cases {
		if !testName.MatchString(match[0]) {
			t.Errorf("docs/contract.md names no test for case %s", match[1])
		}
	}
	for _, match := range faultRow.FindAllStringSubmatch(contract, -1) {
		for name := range strings.SplitSeq(match[1]+match[2], ", ") {
			if !strings.Contains(faults, "\n| "+name+" | ") {
				t.Errorf("docs/contract.md names row %s of the faults, which docs/faults.md does not have", name)
			}
		}
	}
}

// TestRootModuleRequiresWhatIsAgreed compares the table with go.mod, because every
// program that imports the clients also gets the root module's requirements.
func TestRootModuleRequiresWhatIsAgreed(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "\n## Dependencies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	agreed := map[string]bool{}
	for _, match := range requirement.FindAllStringSubmatch(section, -1) {
		agreed[match[1]] = true
	}
	for path := range strings.FieldsSeq(goCommand(t, "list", "-m", "-f", "{{if not (or .Indirect .Main)}}{{.Path}}{{end}}", "all")) {
		if !agreed[path] {
			t.Errorf("go.mod requires %s, which is not in the table of CONTRIBUTING.md#dependencies: do without it, use it in a nested module, or add the reason to the table", path)
		}
		delete(agreed, path)
	}
	for path := range agreed {
		t.Errorf("CONTRIBUTING.md#dependencies has %s, which go.mod does not require", path)
	}
}
