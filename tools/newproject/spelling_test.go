// SPDX-License-Identifier: Apache-2.0

// Tests of names and files in their new spelling.

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

func TestDeriveNames(t *testing.T) {
	for say, test := range map[string]struct {
		request request
		want    names
	}{
		"the plain case": {
			request{Module: "github.com/acme/widgets", Group: "acme.dev", Version: "v1", Kind: "Widget"},
			names{"github.com/acme/widgets", "widgets", "acme.dev", "acme", "Acme", "v1", "Widget", "Widgets", "widgets", ""},
		},
		"a major version, a group with a dash, an acronym": {
			request{Module: "example.org/net/Edge.Routes/v2", Group: "my-team.acme.dev", Version: "v1beta1", Kind: "HTTPRoute", Short: "hr"},
			names{"example.org/net/Edge.Routes/v2", "edge-routes", "my-team.acme.dev", "myteam", "MyTeam", "v1beta1", "HTTPRoute", "HTTPRoutes", "httproutes", "hr"},
		},
		"an irregular plural": {
			request{Module: "example.org/farm/v3", Group: "farm.example", Version: "v2", Kind: "HTTPMouse", Plural: "httpmice"},
			names{"example.org/farm/v3", "farm", "farm.example", "farm", "Farm", "v2", "HTTPMouse", "HTTPMice", "httpmice", ""},
		},
		"a given plural that equals the derived one": {
			request{Module: "example.org/a", Group: "a.example", Version: "v2", Kind: "CacheCluster", Plural: "cacheclusters"},
			names{"example.org/a", "a", "a.example", "a", "A", "v2", "CacheCluster", "CacheClusters", "cacheclusters", ""},
		},
		"a plural that equals the kind": {
			request{Module: "example.org/a", Group: "a.example", Version: "v2", Kind: "Sheep", Plural: "sheep"},
			names{"example.org/a", "a", "a.example", "a", "A", "v2", "Sheep", "Sheep", "sheep", ""},
		},
	} {
		if got := deriveNames(test.request); got != test.want {
			t.Errorf("%s: got\n%+v, want\n%+v", say, got, test.want)
		}
	}
}

// TestPluralOf has plurals that the namers of k8s.io/gengo v2 make.
func TestPluralOf(t *testing.T) {
	for line := range strings.FieldsSeq(`Foo-Foos Policy-Policies Key-Keys Box-Boxes Bus-Buses Branch-Branches Dish-Dishes Path-Paths
		Leaf-Leaves Knife-Knives Cache-Caches HTTPRoute-HTTPRoutes DNS-DNSs Data-Datas Proxy-Proxies X-X`) {
		kind, want, _ := strings.Cut(line, "-")
		if got := pluralOf(kind); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

func TestSplitCamel(t *testing.T) {
	for run, want := range map[string]string{
		"": "", "foo": "foo", "newFoo": "new Foo", "FooTruck": "Foo Truck", "FoodTruck": "Food Truck", "onlyAFoos": "only A Foos",
		"HTTPRoute": "HTTP Route", "SamplecontrollerV1alpha1": "Samplecontroller V1alpha1", "S3Bucket": "S3 Bucket", "FOO": "FOO", "APIs": "AP Is",
	} {
		if got := strings.Join(splitCamel(run), " "); got != want {
			t.Errorf("%q: got %q, want %q", run, got, want)
		}
	}
}

func TestCamel(t *testing.T) {
	for name, want := range map[string]string{"Widget": "widget", "HTTPRoute": "httpRoute", "CacheCluster": "cacheCluster", "DNS": "dns", "S3Bucket": "s3Bucket"} {
		if got := camel(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestModelPackage(t *testing.T) {
	for path, want := range map[string]string{
		"example.com/sample-controller": "com.example.sample-controller", "github.com/acme/widgets/v2": "com.github.acme.widgets.v2", "a.example/x~y": "example.a.x-y",
	} {
		if got := (names{Module: path}).modelPackage(); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestCodegenScriptSpellsPluralsAlike checks that hack/codegen.sh passes the same plurals
// to the generators as casedLike returns.
func TestCodegenScriptSpellsPluralsAlike(t *testing.T) {
	folder := t.TempDir()
	var types, want strings.Builder
	for _, n := range []struct{ kind, plural, kinds string }{
		{"HTTPMouse", "httpmice", "HTTPMice"}, {"Person", "people", "People"}, {"Sheep", "sheep", "Sheep"}, {"CacheCluster", "cacheclusters", "CacheClusters"},
		{"Ox", "kine", "Kine"},
	} {
		if got := casedLike(n.plural, n.kind); got != n.kinds {
			t.Errorf("%s of %s: got %s, want %s", n.plural, n.kind, got, n.kinds)
		}
		fmt.Fprintf(&types, "// +genclient\n// +kubebuilder:resource:shortName=x,path=%s,categories=all\ntype %s struct{}\n", n.plural, n.kind)
		fmt.Fprintf(&want, "%s:%s\n", n.kind, n.kinds)
	}
	types.WriteString("// +genclient\n// +kubebuilder:resource:categories=all\ntype Plain struct{}\n")
	want.WriteString("Plain\n")
	if err := os.WriteFile(filepath.Join(folder, "types.go"), []byte(types.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	// The script leaves a plural without common letters in lower case; the generators
	// capitalize it.
	got, err := exec.CommandContext(t.Context(), "bash", "-c", `source "$0" && codegen::kinds "$1"`, "../../hack/codegen.sh", folder).CombinedOutput()
	if err != nil || strings.ReplaceAll(string(got), ":kine", ":Kine") != want.String() {
		t.Errorf("got %s (%v), want %s", got, err, want.String())
	}
}

// TestCheckModulePath has paths that golang.org/x/mod/module.CheckPath v0.41.0 accepts,
// and others that it refuses.
func TestCheckModulePath(t *testing.T) {
	for _, path := range []string{
		"acme.dev", "github.com/acme/widgets", "github.com/acme/widgets/v2", "github.com/acme/widgets/v10", "a-b.example/x",
		"example.org/net/Edge.Routes", "example.org/_x/~y/-z", "example.org/v2x", "example.org/vv2", "example.org/v", "a..b/c", "0.1/x",
		"example.org/x~y", "example.org/x~1y", "example.org/lpt10", "example.org/x.con",
	} {
		if err := checkModulePath(path); err != nil {
			t.Errorf("%s was refused: %v", path, err)
		}
	}
	for _, path := range []string{
		"", "/", "widgets", "widgets/x.y", "GitHub.com/acme/widgets", "-a.dev/x", ".dev/x", "acme./x", "under_score.dev/x",
		"github.com//widgets", "github.com/acme/", "/github.com/acme", "github.com/acme/my widgets", "github.com/acme/w\u00efdgets",
		"github.com/.acme", "github.com/acme.", "github.com/..", "github.com/acme/a+b", "github.com/acme/a@v1",
		"github.com/acme/v0", "github.com/acme/v1", "github.com/acme/v02", "github.com/acme/v2.1", "acme.dev/v1",
		"github.com/acme/CON", "github.com/acme/nul.x", "con.dev/x", "github.com/acme/x~1", "github.com/acme/x~1.y",
	} {
		if err := checkModulePath(path); err == nil {
			t.Errorf("%q was accepted", path)
		}
	}
}

func TestSplitMajor(t *testing.T) {
	for path, want := range map[string][2]string{
		"github.com/acme/widgets":     {"github.com/acme/widgets", ""},
		"github.com/acme/widgets/v2":  {"github.com/acme/widgets", "v2"},
		"github.com/acme/widgets/v12": {"github.com/acme/widgets", "v12"},
		"github.com/acme/v2x":         {"github.com/acme/v2x", ""},
	} {
		if prefix, major := splitMajor(path); prefix != want[0] || major != want[1] {
			t.Errorf("%s: got %q and %q", path, prefix, major)
		}
	}
}
