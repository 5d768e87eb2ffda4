//go:build !race

// SPDX-License-Identifier: Apache-2.0

// Tests of added kinds.

package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var redirect = addedKind{Kind: "Redirect", Child: "networking.k8s.io/v1/Ingress"}

// withKinds returns the text files of a project with added kinds, by path.
func withKinds(t *testing.T, n names, kinds ...addedKind) map[string]string {
	t.Helper()
	p, err := ours(t).plan(n, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range p.files {
		if file.isText() {
			all[file.path] = string(file.data)
		}
	}
	for _, trace := range findTraces(p.files, n) {
		t.Error(trace)
	}
	return all
}

// TestAnAddedKindIsPlanned checks what the project says of it. TestNewProjects compiles and
// tests such a project.
func TestAnAddedKindIsPlanned(t *testing.T) {
	all := withKinds(t, widget, redirect, addedKind{Kind: "HTTPMouse", Plural: "httpmice", Child: "v1/ConfigMap"})
	for file, want := range map[string][]string{
		"main.go":                                      {"return []controller{widgets, redirects, httpMice}, nil", "internal/redirect\"", "httpmouse.NewController(httpmouse.Config{", "Redirects: api.Redirects()", "clients.Widgets"},
		"internal/redirect/controller.go":              {"package redirect\n", "const (\n\tredirectsResource = \"redirects\"", "internal/redirect/plan\"", "internal/metrics\""},
		"internal/redirect/children.go":                {"kube.Networking().V1().Ingresses().TypedInformer()", "networkingv1 \"k8s.io/api/networking/v1\""},
		"internal/redirect/plan/ingress.go":            {"func Ingress() Child[*networkingv1.Ingress]", "redirect.Spec.IngressName"},
		"internal/redirect/plan/fuzz_rows_test.go":     {"rowOf(Ingress())", "widgettest.RedirectOwner.Kinds"},
		"internal/redirect/simulation_test.go":         {"simulation.TestController(t, widgettest.RedirectOwner, startSimulated)"},
		"test/widgettest/owners.go":                    {"var Owners = []*OwnerRow{WidgetOwner, RedirectOwner, HTTPMouseOwner}"},
		"test/widgettest/httpmouse.go":                 {"delete(configMap.Data, \"owner\")"},
		"pkg/apis/acme/v1/redirect_types.go":           {"path=redirects,categories=all", "IngressName string `json:\"ingressName\"`"},
		"pkg/apis/acme/v1/httpmouse_types.go":          {"path=httpmice,", "a ConfigMap"},
		"pkg/apis/acme/v1/redirect_decode.go":          {"func (s *RedirectStatus) UnmarshalJSON("},
		"artifacts/deploy/permissions/controller.yaml": {"resources: [redirects/status]", "resources: [ingresses]\n  verbs: [get, list, watch, create, patch, delete]", "apiGroups: [\"\"]\n  resources: [configmaps]"},
		"artifacts/deploy/permissions/users.yaml":      {"resources: [redirects]\n  verbs: [create, update, patch, delete, deletecollection]"},
		"artifacts/examples/example-redirect.yaml":     {"kind: Redirect", "ingressName: example-redirect"},
		"test/policy/redirect_test.go":                 {"ofRedirect(redirectplan.Ingress())", "apis/networking/install"},
		"docs/layout.md":                               {"internal/redirect/"},
		"docs/operations.md":                           {"| `update` | `redirects/status` |", "| `create`, `patch`, `delete` | `ingresses` |", "| `update` | `httpmice/finalizers` |"},
	} {
		for _, text := range want {
			if !strings.Contains(all[file], text) {
				t.Errorf("%s has no %q:\n%.2000s", file, text, all[file])
			}
		}
	}
	first := regexp.MustCompile(`\bwidgets?\b|[a-z]Widgets?\b|\.Widgets?\b`)
	for file, text := range all {
		if !strings.HasPrefix(file, "internal/redirect/") {
			continue
		}
		if strings.Contains(text, "eployment") && strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "child.go") {
			t.Errorf("%s mentions Deployments", file)
		}
		text = strings.NewReplacer("github.com/acme/widgets", "", "/pkg/generated", "").Replace(text)
		if found := first.FindString(text); found != "" {
			t.Errorf("%s mentions the first kind: %q", file, found)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
			t.Error(err)
		}
	}
}

// TestNamesOfAddedKinds checks that kinds whose names this project's code uses work, or are
// refused before anything is written.
func TestNamesOfAddedKinds(t *testing.T) {
	for kind, want := range map[string]string{
		"Cluster": "", "Cache": "", "Owner": "", "Database": "", "Gadget": "",
		"Plan": "which every project has", "Queue": "which every project has", "World": "choose another kind", "Controller": "choose another kind", "Widget": "has this kind already", "Pod": "Kubernetes' own",
		"Err": "already has a meaning in generated code", "String": "a word of Go", "gadget": "must be an exported Go identifier",
	} {
		r, k := good, addedKind{Kind: kind, Child: "v1/ConfigMap"}
		err := k.check(r)
		if err == nil {
			_, err = ours(t).plan(deriveNames(r), k)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q in it", kind, err, want)
		}
	}
}

func TestChildren(t *testing.T) {
	for child, want := range map[string]string{
		"networking.k8s.io/v1/Ingress": "", "v1/ConfigMap": "", "batch/v1/CronJob": "", "rbac.authorization.k8s.io/v1/RoleBinding": "", "networking.k8s.io/v1/NetworkPolicy": "",
		"Ingress": "must be GROUP/VERSION/Kind", "acme.dev/v1/Gadget": "client-go does not know this kind", "v1/Node": "belong to no namespace",
		"apps/v1/Deployment": "the first kind owns Deployments", "v1/PodList": "client-go has no client",
	} {
		found, err := childOf(child)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %+v, %v, want %q", child, found, err, want)
		}
	}
}

// TestAddKindRefuses checks the requests that leave the project as it is.
func TestAddKindRefuses(t *testing.T) {
	f := newFixture(t)
	f.write(f.project, "internal/gadget/gadget.go", "package gadget\n")
	f.commit(f.project)
	before := f.git(f.project, "rev-parse", "HEAD", stateBranch)
	for say, test := range map[string]struct {
		args []string
		want string
	}{
		"the kind is there":          {[]string{"-add-kind=Widget"}, "the project has this kind already"},
		"the plural is there":        {[]string{"-add-kind=Gizmo", "-plural=widgets"}, "is that of Widget"},
		"the folder is there":        {[]string{"-add-kind=Gadget"}, "needs internal/gadget"},
		"no such child":              {[]string{"-add-kind=Gizmo", "-child=v1/Gizmo"}, "client-go does not know this kind"},
		"with names of the project":  {[]string{"-add-kind=Gizmo", "-group=acme.dev"}, "takes the other names from the project"},
		"with -update":               {[]string{"-add-kind=Gizmo", "-update"}, "takes the other names from the project"},
		"what it is made from lacks": {[]string{"-add-kind=Gizmo"}, "main.go has no list of controllers"},
	} {
		if _, err := f.run(append(test.args, "-into="+f.project)...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q in it", say, err, test.want)
		}
	}
	if _, err := f.run("-add-kind=Gizmo", "-into="+f.source); err == nil || !strings.Contains(err.Error(), "only projects that newproject made") {
		t.Errorf("no project: %v", err)
	}
	if _, err := f.run("-child=v1/Secret", "-dir=x"); err == nil || !strings.Contains(err.Error(), "go with -add-kind only") {
		t.Errorf("-child alone: %v", err)
	}
	f.write(f.project, "both.txt", "changed\n")
	if _, err := f.run("-add-kind=Gizmo", "-into="+f.project); err == nil || !strings.Contains(err.Error(), "uncommitted changes") {
		t.Errorf("with changes: %v", err)
	}
	if after := f.git(f.project, "rev-parse", "HEAD", stateBranch); after != before {
		t.Errorf("the commits were %s and are %s", before, after)
	}
}

// TestGeneratedConflictsAreResolved merges a generated file that the user has changed, too.
func TestGeneratedConflictsAreResolved(t *testing.T) {
	f := newFixture(t)
	f.write(f.source, "artifacts/chart/files/file.txt", "old\n")
	f.commit(f.source)
	f.mustRun("-update", "-dir="+f.project)
	f.write(f.source, "artifacts/chart/files/file.txt", "from here\n")
	f.commit(f.source)
	f.write(f.project, "artifacts/chart/files/file.txt", "by hand\n")
	f.commit(f.project)
	f.mustRun("-update", "-dir="+f.project)
	if got, err := os.ReadFile(filepath.Join(f.project, "artifacts/chart/files/file.txt")); string(got) != "from here\n" {
		t.Errorf("the generated file is %q, %v", got, err)
	}
}

func TestUsedBy(t *testing.T) {
	files, err := usedBy([]treeFile{
		{path: "a_test.go", data: []byte("package a\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\n// TestA is a test.\nfunc TestA() { fmt.Println(b{}) }\n\n// left out\nfunc unused() { os.Exit(1) }\n")},
		{path: "b_test.go", data: []byte("package a\n\ntype b struct{}\n\nfunc (b) String() string { return c }\n\nfunc (b) hidden() {}\n\nconst c = \"c\"\n")},
		{path: "d_test.go", data: []byte("package a\n\nfunc helper() {}\n")},
	}, isTest)
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if got, want := string(files[0].data), "package a\n\nimport (\n\t\"fmt\"\n)\n\n// TestA is a test.\nfunc TestA() { fmt.Println(b{}) }\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := string(files[1].data), "package a\n\ntype b struct{}\n\nfunc (b) String() string { return c }\n\nconst c = \"c\"\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
