// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWholeAPIPackages adds the packages in testdata/apis, which are written after the manner of those
// that well-known controllers have, generates everything, and uses the clients of all kinds as
// testdata/use_test.go does: the fake ones and, if DEVCLUSTER_BIN names devcluster, real ones.
func TestWholeAPIPackages(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	testdata, err := filepath.Abs("testdata")
	c.must(err)
	dirs, err := filepath.Glob("testdata/apis/*/*")
	c.must(err)
	for _, dir := range dirs {
		dir = strings.TrimPrefix(dir, "testdata/apis/")
		c.write("pkg/apis/"+dir+"/doc.go", strings.NewReplacer("+groupName=gateway.", "+groupGoName=EdgeGateway\n// +groupName=edge-gateway.",
			"+groupName=meta.acme.dev", "The package has no kinds.").Replace(c.doc(dir)))
	}
	c.bash(`cp -R "$1"/apis/* pkg/apis/ && cp -R "$1"/pki pkg/ && cp -R "$1"/renewal ../ && echo module example.com/renewal >../renewal/go.mod &&
		mkdir use && cp "$1"/use_test.go use/ && go mod edit -require=example.com/renewal@v0.0.0 -replace=example.com/renewal=../renewal`, testdata)
	out, code := c.run("hack/update-codegen.sh")
	if code != 0 {
		t.Fatalf("exit code %d, want 0:\n%s", code, out)
	}
	const note = "artifacts/crd/database.acme.dev_redis.yaml, artifacts/crd/monitoring.acme.dev_analyses.yaml, artifacts/crd/workload.acme.dev_jobgroups.yaml: " +
		"too large for kubectl apply without --server-side. Use kubectl apply --server-side -f artifacts/crd\n"
	if !strings.HasSuffix(out, note) || strings.Contains(out, "WARN") {
		t.Errorf("the output has a warning, or does not end with %q:\n%s", note, out)
	}
	c.bash("go test -run=TestFake ./use")
	if devcluster := os.Getenv("DEVCLUSTER_BIN"); devcluster != "" {
		c.bash(`"$1" run -without=kube-controller-manager,kube-scheduler,kwok -data-dir=../cluster -- bash -c '
			"$1" kubectl apply --server-side -f artifacts/crd && "$1" kubectl wait --for=condition=Established crd --all &&
			CLUSTER="${KUBECONFIG}" go test -run=TestCluster ./use' bash "$1"`, devcluster)
	}
}
