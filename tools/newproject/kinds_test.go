//go:build !race

// SPDX-License-Identifier: Apache-2.0

// Tests of added kinds.

package main

import (
	"strings"
	"testing"
)

var redirect = addedKind{Kind: "Redirect", Child: "networking.k8s.io/v1/Ingress"}

// TestAnAddedKindIsPlanned checks what the project says of it. TestNewProjects compiles and
// tests such a project.
func TestAnAddedKindIsPlanned(t *testing.T) {
	all := texts(t, must(t, full), widget, redirect, addedKind{Kind: "HTTPMouse", Plural: "httpmice", Child: "v1/ConfigMap"})
	for file, want := range map[string][]string{
		"clients.go":                                   {"\"Redirect\": func(config Config)", "config.WidgetInformers.Acme().V1().Redirects().Informer()", "config.KubeInformers.Networking().V1().Ingresses().Informer()"},
		"internal/plan/kinds.go":                       {"return []*OwnerKind{Widgets(image), Redirects(), HTTPMice()}"},
		"internal/plan/redirect_kind.go":               {"func redirectIngress() Row[*acmev1.Redirect, *networkingv1.Ingress]", "redirect.Spec.IngressName"},
		"test/widgettest/owners.go":                    {"var Owners = []*OwnerRow{WidgetOwner, RedirectOwner, HTTPMouseOwner}"},
		"test/widgettest/httpmouse_kind.go":            {"delete(configMap.Data, \"owner\")"},
		"pkg/apis/acme/v1/redirect_types.go":           {"path=redirects,categories=all", "IngressName string `json:\"ingressName\"`"},
		"pkg/apis/acme/v1/httpmouse_types.go":          {"path=httpmice,", "a ConfigMap"},
		"pkg/apis/acme/v1/redirect_owner.go":           {"func (s *RedirectStatus) UnmarshalJSON(", "func (redirect *Redirect) GetSpec()"},
		"artifacts/deploy/permissions/controller.yaml": {"resources: [redirects/status]", "resources: [ingresses]\n  verbs: [get, list, watch, create, patch, delete]", "apiGroups: [\"\"]\n  resources: [configmaps]"},
		"artifacts/deploy/permissions/users.yaml":      {"resources: [redirects]\n  verbs: [create, update, patch, delete, deletecollection]"},
		"artifacts/examples/example-redirect.yaml":     {"kind: Redirect", "ingressName: example-redirect"},
		"docs/operations.md":                           {"| `update` | `redirects/status` |", "| `create`, `patch`, `delete` | `ingresses` |", "| `update` | `httpmice/finalizers` |"},
	} {
		for _, text := range want {
			if !strings.Contains(all[file], text) {
				t.Errorf("%s has no %q:\n%.2000s", file, text, all[file])
			}
		}
	}
	for file, text := range all {
		if strings.Contains(file, "redirect_") && strings.Contains(text, "eployment") {
			t.Errorf("%s mentions the first kind", file)
		}
	}
}

// TestNamesOfAddedKinds checks which names are refused before anything is written.
func TestNamesOfAddedKinds(t *testing.T) {
	for kind, want := range map[string]string{
		"Cluster": "", "Cache": "", "Widget": "has this kind already", "Pod": "Kubernetes' own",
		"String": "a word of Go", "gadget": "must begin with a capital letter",
	} {
		err := addedKind{Kind: kind, Child: "v1/ConfigMap"}.check(good)
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
	f.write(f.project, "internal/plan/gadget_kind.go", "package plan\n")
	f.commit(f.project)
	before := f.git(f.project, "rev-parse", "HEAD", stateBranch)
	for say, test := range map[string]struct {
		args []string
		want string
	}{
		"the kind is there":          {[]string{"-add-kind=Widget"}, "the project has this kind already"},
		"the plural is there":        {[]string{"-add-kind=Gizmo", "-plural=widgets"}, "is that of Widget"},
		"the file is there":          {[]string{"-add-kind=Gadget"}, "needs internal/plan/gadget_kind.go"},
		"no such child":              {[]string{"-add-kind=Gizmo", "-child=v1/Gizmo"}, "client-go does not know this kind"},
		"with names of the project":  {[]string{"-add-kind=Gizmo", "-group=acme.dev"}, "takes the other names from the project"},
		"with -update":               {[]string{"-add-kind=Gizmo", "-update"}, "takes the other names from the project"},
		"what it is made from lacks": {[]string{"-add-kind=Gizmo"}, "the project has no clients.go"},
	} {
		if _, err := f.run(append(test.args, "-into="+f.project)...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q in it", say, err, test.want)
		}
	}
	if _, err := f.run("-add-kind=Gizmo", "-into="+f.source); err == nil || !strings.Contains(err.Error(), "only projects that newproject made") {
		t.Errorf("no project: %v", err)
	}
	for want, arguments := range map[string][]string{
		"go with -add-kind only": {"-child=v1/Secret", "-dir=x"},
		"give only -dir":         {"-update", "-dir=x", "-lean"},
	} {
		if _, err := f.run(arguments...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", arguments, err)
		}
	}
	f.write(f.project, "both.txt", "changed\n")
	if _, err := f.run("-add-kind=Gizmo", "-into="+f.project); err == nil || !strings.Contains(err.Error(), "uncommitted changes") {
		t.Errorf("with changes: %v", err)
	}
	if after := f.git(f.project, "rev-parse", "HEAD", stateBranch); after != before {
		t.Errorf("the commits were %s and are %s", before, after)
	}
}
