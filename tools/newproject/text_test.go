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

// Tests of identifiers and texts with new names.

package main

import "testing"

// The names of most tests.
var (
	widget = deriveNames(request{Module: "github.com/acme/widgets", Group: "acme.dev", Version: "v1", Kind: "Widget"})
	route  = deriveNames(request{Module: "github.com/acme/edge-routes/v2", Group: "my-team.acme.dev", Version: "v1beta1", Kind: "HTTPRoute", Short: "hr"})
	policy = deriveNames(request{Module: "github.com/acme/policies", Group: "policy.acme.dev", Version: "v1", Kind: "Policy"})
	truck  = deriveNames(request{Module: "github.com/acme/trucks", Group: "food.acme.dev", Version: "v1alpha1", Kind: "FoodTruck"})
	bar    = deriveNames(request{Module: "github.com/acme/foo-controller", Group: "samplecontroller.acme.dev", Version: "v1alpha2", Kind: "FooBar"})
	sheep  = deriveNames(request{Module: "github.com/acme/farm", Group: "farm.acme.dev", Version: "v1", Kind: "Sheep", Plural: "sheep"})
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
		"onlyAFoos":                    {"onlyAnHTTPRoutes", "onlyAPolicys"},
		"TestAFooScales":               {"TestAnHTTPRouteScales", "TestAPolicyScales"},
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
			if got := newSpeller(n).identifier(name); got != want[i] {
				t.Errorf("%s for %s: got %s, want %s", name, n.Kind, got, want[i])
			}
		}
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		// Prose.
		"A Foo's Deployment, and Foos' Pods":       "An HTTPRoute's Deployment, and HTTPRoutes' Pods",
		"It is a `Foo`, or a\n// Foo":              "It is an `HTTPRoute`, or an\n// HTTPRoute",
		"another Foo; a Food; data Foo":            "another HTTPRoute; a Food; data HTTPRoute",
		"a foo":                                    "an httproute",
		"Copyright The Sample Controller Authors.": "Copyright The Edge Routes Authors.",
		"ADOPT-BY=FOO":                             "ADOPT-BY=HTTPROUTE",
		// Names of objects, files and folders.
		"kubectl get foos example-foo":                                     "kubectl get httproutes example-httproute",
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
		"alert: SampleControllerFoosNotReady":                              "alert: EdgeRoutesHTTPRoutesNotReady",
		"sample-controller-foo-edit":                                       "edge-routes-httproute-edit",
		"FuzzAcceptedFooIsRead/time_zero":                                  "FuzzAcceptedHTTPRouteIsRead/time_zero",
		// Versions.
		"v1alpha1/foo.go":            "v1beta1/httproute.go",
		"kwok.x-k8s.io/v1alpha1":     "kwok.x-k8s.io/v1alpha1",
		"samplecontroller.k8s.io/v1": "my-team.acme.dev/v1",
		"samplecontroller/v1beta1":   "myteam/v1alpha1",
		"metav1, appsv1, v1":         "metav1, appsv1, v1",
		// Not of this project.
		"github.com/kubernetes/sample-controller": "github.com/kubernetes/sample-controller",
		"footprint of food":                       "footprint of food",
		`\tfoo\nfoos`:                             `\thttproute\nhttproutes`,
		// Columns.
		"sample-controller      reported Foo web        1/1": "edge-routes            reported HTTPRoute web  1/1",
		"    foo  x": "    httproute  x",
	} {
		if got := newSpeller(route).text(text, prose); got != want {
			t.Errorf("%s: got\n%s, want\n%s", text, got, want)
		}
	}
}

func TestTablesOfDocuments(t *testing.T) {
	old := "A\n\n```\n$ kubectl get foos\nNAME          DEPLOYMENT    READY\nexample-foo   example-foo   True\nb\n```\n\nthe foo  or a\nFoo\n"
	want := "A\n\n```\n$ kubectl get httproutes\nNAME                DEPLOYMENT          READY\nexample-httproute   example-httproute   True\nb\n```\n\nthe httproute  or an\nHTTPRoute\n"
	if got := newSpeller(route).document(old); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextWithAKindThatContainsTheOldOne(t *testing.T) {
	s := newSpeller(bar)
	if got, want := s.text("a Foo, newFoo, foos in sample-controller", prose), "a FooBar, newFooBar, foobars in foo-controller"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLowerCaseNamesInCommentsAreVariables(t *testing.T) {
	s := newSpeller(route)
	text := "// newFoo makes foo of foos: kubectl get foo, example-foo, foos/status"
	want := "// newHTTPRoute makes httpRoute of httpRoutes: kubectl get httproute, example-httproute, httproutes/status"
	if got := s.text(text, comment); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
