// SPDX-License-Identifier: Apache-2.0

// Tests of names and files in their new spelling.

package main

import (
	"strings"
	"testing"
)

// The names of most tests.
var (
	widget = deriveNames(request{Module: "github.com/acme/widgets", Group: "acme.dev", Version: "v1", Kind: "Widget"})
	route  = deriveNames(request{Module: "github.com/acme/edge-routes/v2", Group: "my-team.acme.dev", Version: "v1beta1", Kind: "HTTPRoute", Short: "hr"})
	policy = deriveNames(request{Module: "github.com/acme/policies", Group: "policy.acme.dev", Version: "v1", Kind: "Policy"})
	truck  = deriveNames(request{Module: "github.com/acme/trucks", Group: "food.acme.dev", Version: "v1alpha1", Kind: "FoodTruck"})
	bar    = deriveNames(request{Module: "github.com/acme/foo-controller", Group: "samplecontroller.acme.dev", Version: "v1alpha2", Kind: "FooBar"})
	sheep  = deriveNames(request{Module: "github.com/acme/farm", Group: "farm.acme.dev", Version: "v1", Kind: "Sheep", Plural: "sheep"})
	index  = deriveNames(request{Module: "github.com/acme/indexes", Group: "index.acme.dev", Version: "v1", Kind: "Index"})
)

func TestIdentifier(t *testing.T) {
	for name, want := range map[string][2]string{
		"foo":                          {"httpRoute", "policy"},
		"foos":                         {"httpRoutes", "policies"},
		"newFoo":                       {"newHTTPRoute", "newPolicy"},
		"fooCase":                      {"httpRouteCase", "policyCase"},
		"waitForFoos":                  {"waitForHTTPRoutes", "waitForPolicies"},
		"FooStatus":                    {"HTTPRouteStatus", "PolicyStatus"},
		"foosDeployment":               {"httpRoutesDeployment", "policiesDeployment"},
		"footest":                      {"httproutetest", "policytest"},
		"fooinformers":                 {"httprouteinformers", "policyinformers"},
		"typedfoo":                     {"typedhttproute", "typedpolicy"},
		"FoodTruck":                    {"FoodTruck", "FoodTruck"},
		"footprint":                    {"footprint", "footprint"},
		"Samplecontroller":             {"MyTeam", "Policy"},
		"FakeSamplecontrollerV1alpha1": {"FakeMyTeamV1beta1", "FakePolicyV1"},
		"AdmissionV1alpha1":            {"AdmissionV1alpha1", "AdmissionV1alpha1"},
		"sampleController":             {"edgeRoutesController", "policiesController"},
		"SampleControllerDown":         {"EdgeRoutesDown", "PoliciesDown"},
		"samplev1alpha1":               {"myteamv1beta1", "policyv1"},
		"Foo_foos":                     {"HTTPRoute_httpRoutes", "Policy_policies"},
	} {
		for i, n := range []names{route, policy} {
			if got := (speller{names: n}).identifier(name); got != want[i] {
				t.Errorf("%s for %s: got %s, want %s", name, n.Kind, got, want[i])
			}
		}
	}
}

// TestOtherSpellings uses those for names whose regular spelling is taken.
func TestOtherSpellings(t *testing.T) {
	for name, want := range map[string]string{
		"foo": "policyResource", "foos": "policyResources", "newFoo": "newPolicyResource", "NewFoo": "NewPolicy", "footest": "policytest",
		"samplev1alpha1": "policyapiv1",
	} {
		if got := (speller{names: policy, suffixed: true, longAlias: true}).identifier(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"A Foo's Deployment, and Foos' Pods":                               "A HTTPRoute's Deployment, and HTTPRoutes' Pods",
		"another Foo; a Food; data Foo":                                    "another HTTPRoute; a Food; data HTTPRoute",
		"ADOPT-BY=FOO":                                                     "ADOPT-BY=HTTPROUTE",
		"kubectl get foos example-foo, or fo":                              "kubectl get httproutes example-httproute, or hr",
		"foos.samplecontroller.k8s.io":                                     "httproutes.my-team.acme.dev",
		"apiVersion: samplecontroller.k8s.io/v1alpha1":                     "apiVersion: my-team.acme.dev/v1beta1",
		`samplecontroller\.k8s\.io`:                                        `my-team\.acme\.dev`,
		"e2e.samplecontroller.k8s.io/run":                                  "e2e.my-team.acme.dev/run",
		"artifacts/crd/samplecontroller.k8s.io_foos.yaml":                  "artifacts/crd/my-team.acme.dev_httproutes.yaml",
		"pkg/apis/samplecontroller/v1alpha1/types.go":                      "pkg/apis/myteam/v1beta1/types.go",
		"example.com/sample-controller/devcluster":                         "github.com/acme/edge-routes/v2/devcluster",
		"registry.example.com/team/sample-controller:v1":                   "registry.example.com/team/edge-routes:v1",
		"registry.example.com/sample-controller":                           "registry.example.com/edge-routes",
		"com.example.sample-controller.pkg.apis.samplecontroller.v1alpha1": "com.github.acme.edge-routes.v2.pkg.apis.myteam.v1beta1",
		"sample_controller_foos{resource=\"foos/status\"}":                 "edge_routes_httproutes{resource=\"httproutes/status\"}",
		"#alert-samplecontrollerfoosnotready":                              "#alert-edgerouteshttproutesnotready",
		"alert: SampleControllerFoosNotReady, of the sample controller":    "alert: EdgeRoutesHTTPRoutesNotReady, of the edge routes",
		"sample-controller-foo-edit":                                       "edge-routes-httproute-edit",
		"FuzzAcceptedFooIsRead/time_zero":                                  "FuzzAcceptedHTTPRouteIsRead/time_zero",
		"`newFoo`, `fooLister`":                                            "`newHTTPRoute`, `httpRouteLister`",
		"v1alpha1/foo.go":                                                  "v1beta1/httproute.go",
		"kwok.x-k8s.io/v1alpha1":                                           "kwok.x-k8s.io/v1alpha1",
		"samplecontroller.k8s.io/v1":                                       "my-team.acme.dev/v1",
		"samplecontroller/v1beta1":                                         "myteam/v1alpha1",
		"metav1, appsv1, v1":                                               "metav1, appsv1, v1",
		"github.com/kubernetes/sample-controller":                          "github.com/kubernetes/sample-controller",
		"footprint of food":                                                "footprint of food",
		`\tfoo\nfoos`:                                                      `\thttproute\nhttproutes`,
	} {
		if got := (speller{names: route}).text(text); got != want {
			t.Errorf("%s: got\n%s, want\n%s", text, got, want)
		}
	}
	if got, want := (speller{names: bar}).text("a Foo, newFoo, foos in sample-controller"), "a FooBar, newFooBar, foobars in foo-controller"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (speller{names: index}).text("a Foo, a `Foo`; A Foo"), "an Index, an `Index`; An Index"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func renamed(t *testing.T, n names, path, source string) string {
	t.Helper()
	files, err := speller{names: n}.rename([]treeFile{{path, []byte(source), 0o644}})
	if err != nil {
		t.Fatal(err)
	}
	return string(files[0].data)
}

func TestRenameGo(t *testing.T) {
	source := `// Package main reconciles each Foo.
package main

import (
	appsv1 "k8s.io/api/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// syncFoo syncs a Foo; the Foo is not changed.
func syncFoo(factory fooinformers.SharedInformerFactory, foo *samplev1alpha1.Foo, food int) string {
	_ = factory.Samplecontroller().V1alpha1().Foos().Informer()
	_ = others.AppsV1alpha1().V1alpha1()
	foos := []*appsv1.Deployment{}
	return "foos\tfoo in sample-controller " + "fo" + ` + "`kubectl get fo`" + ` // the Foo's
}
`
	want := `// Package main reconciles each HTTPRoute.
package main

import (
	appsv1 "k8s.io/api/apps/v1"

	myteamv1beta1 "github.com/acme/edge-routes/v2/pkg/apis/myteam/v1beta1"
	httprouteinformers "github.com/acme/edge-routes/v2/pkg/generated/informers/externalversions"
)

// syncHTTPRoute syncs a HTTPRoute; the HTTPRoute is not changed.
func syncHTTPRoute(factory httprouteinformers.SharedInformerFactory, httpRoute *myteamv1beta1.HTTPRoute, food int) string {
	_ = factory.MyTeam().V1beta1().HTTPRoutes().Informer()
	_ = others.AppsV1alpha1().V1alpha1()
	httpRoutes := []*appsv1.Deployment{}
	return "httproutes\thttproute in edge-routes " + "hr" + ` + "`kubectl get hr`" + ` // the HTTPRoute's
}
`
	if got := renamed(t, route, "main.go", source); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMarkers(t *testing.T) {
	source := `// +groupName=samplecontroller.k8s.io

// Package v1alpha1 is the API.
package v1alpha1

// +genclient
// +kubebuilder:resource:shortName=fo,categories=all
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, experimental-only"
// +kubebuilder:validation:XValidation:rule="self"

// Foo is what users write.
type Foo struct{}
`
	path := "pkg/apis/samplecontroller/v1alpha1/types.go"
	for _, test := range []struct {
		names names
		want  string
	}{
		{route, `// +groupName=my-team.acme.dev
// +groupGoName=MyTeam

// Package v1beta1 is the API.
package v1beta1

// +genclient
// +kubebuilder:resource:path=httproutes,shortName=hr,categories=all
// +kubebuilder:validation:XValidation:rule="self"

// HTTPRoute is what users write.
type HTTPRoute struct{}
`},
		{widget, `// +groupName=acme.dev

// Package v1 is the API.
package v1

// +genclient
// +kubebuilder:resource:path=widgets,categories=all
// +kubebuilder:validation:XValidation:rule="self"

// Widget is what users write.
type Widget struct{}
`},
	} {
		if got := renamed(t, test.names, path, source); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.names.Kind, got, test.want)
		}
	}
}

func TestRenameGoMod(t *testing.T) {
	source := "module example.com/sample-controller/test/fuzz\n\nrequire example.com/sample-controller v0.0.0-00010101000000-000000000000\n\nreplace example.com/sample-controller => ../..\n"
	want := "module github.com/acme/edge-routes/v2/test/fuzz\n\nrequire github.com/acme/edge-routes/v2 v2.0.0-00010101000000-000000000000\n\nreplace github.com/acme/edge-routes/v2 => ../..\n"
	if got := renamed(t, route, "go.mod", source); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTwoFilesOfOnePath(t *testing.T) {
	_, err := speller{names: sheep}.rename([]treeFile{{path: "foo.txt"}, {path: "foos.txt"}})
	if err == nil || !strings.Contains(err.Error(), "two files would have the path sheep.txt") {
		t.Errorf("got %v", err)
	}
}
