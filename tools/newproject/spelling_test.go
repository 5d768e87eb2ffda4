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
	route  = deriveNames(request{Module: "github.com/acme/Edge.Routes/v2", Group: "my-team.acme.dev", Version: "v1beta1", Kind: "HTTPRoute", Short: "hr"})
	bar    = deriveNames(request{Module: "github.com/acme/foo-controller", Group: "samplecontroller.acme.dev", Version: "v1alpha2", Kind: "FooBar"})
	index  = deriveNames(request{Module: "github.com/acme/indexes", Group: "index.acme.dev", Version: "v1", Kind: "Index"})
)

// renamed returns a file with the names of a project.
func renamed(t *testing.T, s spelling, name, source string) string {
	t.Helper()
	file := slotFile(treeFile{path: name, data: []byte(source)}, map[string]bool{})
	if found := traces([]treeFile{file}); len(found) > 0 {
		t.Error(found)
	}
	file, err := s.fill(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(file.data)
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"A Foo's Deployment, and Foos' Pods":                               "A HTTPRoute's Deployment, and HTTPRoutes' Pods",
		"another Foo; a Food; data Foo":                                    "another HTTPRoute; a Food; data HTTPRoute",
		"ADOPT-BY=FOO":                                                     "ADOPT-BY=HTTPROUTE",
		"kubectl get foos example-foo, or fo":                              "kubectl get httproutes example-httproute, or hr",
		"foos.samplecontroller.k8s.io":                                     "httproutes.my-team.acme.dev",
		"apiVersion: samplecontroller.k8s.io/v1alpha1":                     "apiVersion: my-team.acme.dev/v1beta1",
		"e2e.samplecontroller.k8s.io/run":                                  "e2e.my-team.acme.dev/run",
		"artifacts/crd/samplecontroller.k8s.io_foos.yaml":                  "artifacts/crd/my-team.acme.dev_httproutes.yaml",
		"pkg/apis/samplecontroller/v1alpha1/types.go":                      "pkg/apis/myteam/v1beta1/types.go",
		"example.com/sample-controller/devcluster":                         "github.com/acme/Edge.Routes/v2/devcluster",
		"registry.example.com/team/sample-controller:v1":                   "registry.example.com/team/edge-routes:v1",
		"registry.example.com/sample-controller":                           "registry.example.com/edge-routes",
		"com.example.sample-controller.pkg.apis.samplecontroller.v1alpha1": "com.github.acme.Edge.Routes.v2.pkg.apis.myteam.v1beta1",
		"sample_controller_foos{resource=\"foos/status\"}":                 "edge_routes_httproutes{resource=\"httproutes/status\"}",
		"#alert-samplecontrollerfoosnotready":                              "#alert-edgerouteshttproutesnotready",
		"alert: SampleControllerFoosNotReady, of the sample controller":    "alert: EdgeRoutesHTTPRoutesNotReady, of the edge routes",
		"sample-controller-foo-edit":                                       "edge-routes-httproute-edit",
		"FuzzAcceptedFooIsRead/time_zero":                                  "FuzzAcceptedHTTPRouteIsRead/time_zero",
		"`newFoo`, `fooLister`":                                            "`newHTTPRoute`, `httpRouteLister`",
		"v1alpha1/foo.go":                                                  "v1beta1/httproute.go",
		"kwok.x-k8s.io/v1alpha1":                                           "kwok.x-k8s.io/v1alpha1",
		"samplecontroller.k8s.io/v1":                                       "my-team.acme.dev/v1",
		"metav1, appsv1, v1":                                               "metav1, appsv1, v1",
		"footprint of food":                                                "footprint of food",
		`\tfoo\nfoos`:                                                      `\thttproute\nhttproutes`,

		// Markers, and the requirements of modules.
		"// +groupName=samplecontroller.k8s.io\n":                                                              "// +groupName=my-team.acme.dev\n// +groupGoName=MyTeam\n",
		"// +kubebuilder:resource:shortName=fo,categories=all":                                                 "// +kubebuilder:resource:path=httproutes,shortName=hr,categories=all",
		"// +kubebuilder:metadata:annotations=\"api-approved.kubernetes.io=unapproved, experimental-only\"\nx": "x",
		"require example.com/sample-controller v0.0.0-00010101000000-000000000000":                             "require github.com/acme/Edge.Routes/v2 v2.0.0-00010101000000-000000000000",
		"replace example.com/sample-controller => ../..":                                                       "replace github.com/acme/Edge.Routes/v2 => ../..",
	} {
		if got := renamed(t, spelling{names: route}, "a.md", text); got != want {
			t.Errorf("%s: got\n%s, want\n%s", text, got, want)
		}
	}
	for _, test := range []struct {
		names      names
		text, want string
	}{
		{bar, "a Foo, newFoo, foos in sample-controller", "a FooBar, newFooBar, foobars in foo-controller"},
		{index, "a Foo, a `Foo`; A Foo", "an Index, an `Index`; An Index"},
		{widget, "// +groupName=samplecontroller.k8s.io\n", "// +groupName=acme.dev\n"},
		{names{Module: "a.example/x~y/v2", Kind: "X"}, "com.example.sample-controller", "example.a.x-y.v2"},
		{widget, "+kubebuilder:resource:shortName=fo,categories=all", "+kubebuilder:resource:path=widgets,categories=all"},
	} {
		if got := renamed(t, spelling{names: test.names}, "a.md", test.text); got != test.want {
			t.Errorf("%s: got %q, want %q", test.names.Kind, got, test.want)
		}
	}
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

	myteamv1beta1 "github.com/acme/Edge.Routes/v2/pkg/apis/myteam/v1beta1"
	httprouteinformers "github.com/acme/Edge.Routes/v2/pkg/generated/informers/externalversions"
)

// syncHTTPRoute syncs a HTTPRoute; the HTTPRoute is not changed.
func syncHTTPRoute(factory httprouteinformers.SharedInformerFactory, httpRoute *myteamv1beta1.HTTPRoute, food int) string {
	_ = factory.MyTeam().V1beta1().HTTPRoutes().Informer()
	_ = others.AppsV1alpha1().V1alpha1()
	httpRoutes := []*appsv1.Deployment{}
	return "httproutes\thttproute in edge-routes " + "hr" + ` + "`kubectl get hr`" + ` // the HTTPRoute's
}
`
	if got := renamed(t, spelling{names: route}, "main.go", source); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOtherSpellings covers unexported identifiers and the API's package whose regular spelling is
// taken, including comments that name them.
func TestOtherSpellings(t *testing.T) {
	source := `package main

// deleteFoos deletes foos, NewFoo and newFoo do not. fooText is a text.
func deleteFoos(foo footest.FooList, fooText samplev1alpha1.Foo) { println("deleteFoos\\nFoos") }
`
	want := `package main

// deletePolicyResources deletes policies, NewPolicy and newPolicyResource do not. policyResourceText is a text.
func deletePolicyResources(policyResource policytest.PolicyList, policyResourceText policyapiv1.Policy) {
	println("deletePolicyResources\\nPolicies")
}
`
	policy := deriveNames(request{Module: "github.com/acme/policies", Group: "policy.acme.dev", Version: "v1", Kind: "Policy"})
	if got := renamed(t, spelling{names: policy, suffixed: true, longAlias: true}, "main.go", source); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTraces covers old names that no rule replaces, and words that only look like one.
func TestTraces(t *testing.T) {
	for line, want := range map[string]bool{
		"fOO": true, "sample.controller": true, "Sample-Controller": true, "samplev2": true, "github.com/kubernetes/sample-controller": true,
		"food for a footprint": false, "a sample of a controller": false, "registry.example.com/team/widgets": false,
	} {
		file := slotFile(treeFile{path: "a", data: []byte("first\n" + line + "\n")}, nil)
		if got := traces([]treeFile{file}); len(got) > 0 != want || want && !strings.HasPrefix(got[0], "a:2: ") {
			t.Errorf("%q: got %v", line, got)
		}
	}
	if got := traces([]treeFile{{path: "docs/Foo.md"}, {path: "go.sum", data: []byte("foo")}, {path: "image", data: []byte("foo\x00")}}); len(got) != 1 {
		t.Errorf("got %v, want only docs/Foo.md", got)
	}
}

// TestSpellingsOfAKind covers kinds with their plurals and variable names.
func TestSpellingsOfAKind(t *testing.T) {
	for line := range strings.FieldsSeq(`Foo-Foos-foo Policy-Policies-policy Key-Keys-key Box-Boxes-box Bus-Buses-bus
		Branch-Branches-branch Dish-Dishes-dish Path-Paths-path Leaf-Leaves-leaf Knife-Knives-knife Cache-Caches-cache
		HTTPRoute-HTTPRoutes-httpRoute CacheCluster-CacheClusters-cacheCluster S3Bucket-S3Buckets-s3Bucket DNS-DNSs-dns
		Data-Datas-data Proxy-Proxies-proxy X-X-x`) {
		kind, _, _ := strings.Cut(line, "-")
		if got := kind + "-" + pluralOf(kind) + "-" + camel(kind); got != line {
			t.Errorf("got %s, want %s", got, line)
		}
	}
}

// TestPluralsAreSpelledLikeKinds covers the plurals with capitals, which hack/codegen passes to the
// generators of clients in the same spelling.
func TestPluralsAreSpelledLikeKinds(t *testing.T) {
	for _, n := range []struct{ kind, plural, kinds string }{
		{"HTTPMouse", "httpmice", "HTTPMice"}, {"Person", "people", "People"}, {"Sheep", "sheep", "Sheep"}, {"CacheCluster", "cacheclusters", "CacheClusters"},
		{"Ox", "kine", "Kine"},
	} {
		if got := casedLike(n.plural, n.kind); got != n.kinds {
			t.Errorf("%s of %s: got %s, want %s", n.plural, n.kind, got, n.kinds)
		}
	}
}
