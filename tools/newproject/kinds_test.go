//go:build !race

// SPDX-License-Identifier: Apache-2.0

// Tests of added kinds.

package main

import (
	"strings"
	"testing"
)

var redirect = addedKind{Kind: "Redirect", Child: "networking.k8s.io/v1/Ingress"}

// TestAnAddedKindIsPlanned checks the kind's entries in other files. TestNewProjects compiles and
// tests such a project.
func TestAnAddedKindIsPlanned(t *testing.T) {
	all := texts(t, must(t, full), widget, redirect, addedKind{Kind: "HTTPMouse", Plural: "httpmice", Child: "v1/ConfigMap"})
	for file, want := range map[string][]string{
		"clients.go":                                   {"\"Redirect\": func(config Config)", "config.WidgetInformers.Acme().V1().Redirects().Informer()", "config.KubeInformers.Networking().V1().Ingresses().Informer()"},
		"pkg/reconcile/plan/kinds.go":                  {"return []*OwnerKind{Widgets(image, options...), Redirects(), HTTPMice()}"},
		"pkg/reconcile/plan/redirect_kind.go":          {"func redirectIngress() Row[*acmev1.Redirect, *networkingv1.Ingress]", "redirect.Spec.IngressName"},
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

// TestAddedKindsAndTheirChildren checks which kinds are refused before anything is written.
func TestAddedKindsAndTheirChildren(t *testing.T) {
	for names, want := range map[string]string{
		"Cluster v1/ConfigMap": "", "Cache v1/ConfigMap": "", "Widget v1/ConfigMap": "has this kind already", "Pod v1/ConfigMap": "Kubernetes' own",
		"String v1/ConfigMap": "a word of Go", "gadget v1/ConfigMap": "-add-kind=gadget: must be an exported Go identifier",
		"A1 networking.k8s.io/v1/Ingress": "", "A1 batch/v1/CronJob": "", "A1 rbac.authorization.k8s.io/v1/RoleBinding": "", "A1 networking.k8s.io/v1/NetworkPolicy": "",
		"A1 Ingress": "must be GROUP/VERSION/Kind", "A1 acme.dev/v1/Gadget": "client-go does not know this kind", "A1 v1/Node": "are cluster-scoped",
		"A1 apps/v1/Deployment": "the first kind owns Deployments", "A1 v1/PodList": "client-go has no client",
	} {
		kind, child, _ := strings.Cut(names, " ")
		err := addedKind{Kind: kind, Child: child}.check(good)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", names, err, want)
		}
	}
}

// TestAddKindRefuses checks the requests that leave the project as it is.
func TestAddKindRefuses(t *testing.T) {
	f := newFixture(t)
	f.write(f.project, "pkg/reconcile/plan/gadget_kind.go", "package plan\n")
	f.commit(f.project)
	before := f.git(f.project, "rev-parse", "HEAD", stateBranch)
	refuses := func(args, want string) {
		t.Helper()
		fields := strings.Fields(args)
		for i := range fields {
			fields[i] = strings.NewReplacer("PROJECT", f.project, "SOURCE", f.source).Replace(fields[i])
		}
		if _, err := f.run(fields...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", args, err, want)
		}
	}
	for args, want := range map[string]string{
		"-into=PROJECT -add-kind=Widget":                "the project has this kind already",
		"-into=PROJECT -add-kind=Gizmo -plural=widgets": "is already the plural of Widget",
		"-into=PROJECT -add-kind=Gadget":                "needs pkg/reconcile/plan/gadget_kind.go",
		"-into=PROJECT -add-kind=Gizmo -child=v1/Gizmo": "client-go does not know this kind",
		"-into=PROJECT -add-kind=Gizmo -group=acme.dev": "takes the other names from the project",
		"-into=PROJECT -add-kind=Gizmo -update":         "takes the other names from the project",
		"-into=PROJECT -add-kind=Gizmo":                 "the project has no clients.go",
		"-into=SOURCE -add-kind=Gizmo":                  "only projects that newproject generated",
		"-child=v1/Secret -dir=x":                       "only with -add-kind",
		"-update -dir=x -lean":                          "add only -dir",
	} {
		refuses(args, want)
	}
	f.write(f.project, "both.txt", "changed\n")
	refuses("-into=PROJECT -add-kind=Gizmo", "uncommitted changes")
	if after := f.git(f.project, "rev-parse", "HEAD", stateBranch); after != before {
		t.Errorf("the commits were %s and are %s", before, after)
	}
}
