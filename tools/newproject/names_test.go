// SPDX-License-Identifier: Apache-2.0

// Tests of the derived names.

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
