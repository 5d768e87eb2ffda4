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

// Tests of rewriting Go files and go.mod files.

package main

import (
	"strings"
	"testing"
)

// rewritten returns a Go file with the new names. The file is the only one of its
// package.
func rewritten(t *testing.T, n names, path, source string) string {
	t.Helper()
	file, err := parseGo(path, []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	s := newSpeller(n)
	out, err := s.rewrite(file, packagesOf([]*goFile{file})[0].locals(s))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestRewriteGo(t *testing.T) {
	source := `// Package main reconciles each Foo.
package main

import (
	appsv1 "k8s.io/api/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// syncFoo syncs a Foo; foo is not changed.
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

// syncHTTPRoute syncs an HTTPRoute; httpRoute is not changed.
func syncHTTPRoute(factory httprouteinformers.SharedInformerFactory, httpRoute *myteamv1beta1.HTTPRoute, food int) string {
	_ = factory.MyTeam().V1beta1().HTTPRoutes().Informer()
	_ = others.AppsV1alpha1().V1alpha1()
	httpRoutes := []*appsv1.Deployment{}
	return "httproutes\thttproute in edge-routes " + "hr" + ` + "`kubectl get hr`" + ` // the HTTPRoute's
}
`
	if got := rewritten(t, route, "main.go", source); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTakenIdentifiers rewrites names whose new spelling is another name of the package,
// or a word of Go.
func TestTakenIdentifiers(t *testing.T) {
	source := `package main

import (
	appsv1 "k8s.io/api/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func newFoo(foo samplev1alpha1.Foo, foos []appsv1.Deployment, cluster, sheep, newCluster int) { use(foo, foos) }
`
	for _, test := range []struct {
		request request
		want    string
	}{
		{
			request{Group: "apps.acme.dev", Version: "v1", Kind: "Cluster"},
			"func newClusterResource(clusterResource ownAppsv1.Cluster, clusters []appsv1.Deployment, cluster, sheep, newCluster int) {\n\tuse(clusterResource, clusters)\n}",
		},
		{
			request{Group: "farm.acme.dev", Version: "v1", Kind: "Range", Plural: "range"},
			"func newRange(rangeResource farmv1.Range, rangeResources []appsv1.Deployment, cluster, sheep, newCluster int) {\n\tuse(rangeResource, rangeResources)\n}",
		},
	} {
		test.request.Module = "github.com/acme/x"
		got := rewritten(t, deriveNames(test.request), "main.go", source)
		if !strings.Contains(got, "\n"+test.want+"\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", test.request.Kind, got, test.want)
		}
	}
}

// TestTakenPackageNames uses a kind that has the name of one of this project's packages.
func TestTakenPackageNames(t *testing.T) {
	source := `package main

import "example.com/sample-controller/internal/kubeclient"

func use(foo kubeclient.Clients) {}
`
	got := rewritten(t, deriveNames(request{Module: "github.com/acme/x", Group: "a.example", Version: "v1", Kind: "Kubeclient"}), "main.go", source)
	if want := "func use(kubeclientResource kubeclient.Clients) {}"; !strings.Contains(got, want) {
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

// Foo is a Foo.
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

// HTTPRoute is an HTTPRoute.
type HTTPRoute struct{}
`},
		{widget, `// +groupName=acme.dev

// Package v1 is the API.
package v1

// +genclient
// +kubebuilder:resource:path=widgets,categories=all
// +kubebuilder:validation:XValidation:rule="self"

// Widget is a Widget.
type Widget struct{}
`},
	} {
		file, err := parseGo(path, []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		got, err := newSpeller(test.names).rewrite(file, nil)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got (%v)\n%s\nwant\n%s", test.names.Kind, err, got, test.want)
		}
	}
}

func TestRewriteGoMod(t *testing.T) {
	source := `// Why it is apart.
module example.com/sample-controller/test/fuzz

go 1.26.0

require (
	example.com/sample-controller v0.0.0-00010101000000-000000000000
	k8s.io/api v0.37.2
)

require cel.dev/expr v0.25.1 // indirect

replace (
	example.com/sample-controller => ../..
	k8s.io/sample-controller => k8s.io/sample-controller v0.37.0
)
`
	want := `// Why it is apart.
module github.com/acme/edge-routes/v2/test/fuzz

go 1.26.0

require (
	github.com/acme/edge-routes/v2 v2.0.0-00010101000000-000000000000
	k8s.io/api v0.37.2
)

require cel.dev/expr v0.25.1 // indirect

replace github.com/acme/edge-routes/v2 => ../..
`
	got, err := rewriteGoMod("go.mod", []byte(source), route.Module)
	if err != nil || string(got) != want {
		t.Errorf("got (%v)\n%s\nwant\n%s", err, got, want)
	}
}
