// SPDX-License-Identifier: Apache-2.0

// Conformance: random paths are replayed on a real API server, which must answer, store and
// announce what the model does.

package explore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

var (
	paths    = flag.Int("explore.paths", 60, "how many paths to replay on a real API server")
	pathSeed = flag.Uint64("explore.paths-seed", 1, "which paths to replay on a real API server")
)

const (
	// stepsOfPath is how long a path is at most. Most make 60 to 80 requests.
	stepsOfPath = 200
	// pathWorkers is how many paths are replayed at the same time.
	pathWorkers = 4
)

// TestConformance replays random paths of a controller's worlds on a real API server, that of
// a cluster without controllers, and fails if that answers, stores or announces anything
// otherwise than the model.
func TestConformance(t *testing.T, owner *footest.OwnerRow, create New) {
	t.Helper()
	if os.Getenv("DEVCLUSTER_BIN") == "" {
		t.Skip("DEVCLUSTER_BIN does not name a devcluster: run make explore-conformance")
	}
	client, err := newObjectClient(startCluster(t))
	if err != nil {
		t.Fatal(err)
	}
	worlds := pathWorlds(owner)
	var mu sync.Mutex
	done, requests, refused, events := 0, 0, 0, 0
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(pathWorkers)
	for n := range *paths {
		group.Go(func() error {
			p, err := replayPath(ctx, worlds[n%len(worlds)], create, client, n)
			if err != nil {
				return fmt.Errorf("path %d of the seed %d: %w", n, *pathSeed, err)
			}
			mu.Lock()
			defer mu.Unlock()
			done, requests, refused, events = done+1, requests+len(p.story), refused+p.refused, events+p.events
			if done%20 == 0 {
				fmt.Printf("explore-conformance: %d paths, %d requests, of which %d were refused, %d events\n", done, requests, refused, events)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// replayPath makes a path of a world, and replays it in a namespace of its own. Nobody else writes
// there. It returns an error with the path's story if the model and the server differ.
func replayPath(ctx context.Context, w World, create New, client rest.Interface, n int) (*replay, error) {
	s, err := newScene(w)
	if err != nil {
		return nil, err
	}
	r, err := newRunner(s, create)
	if err != nil {
		return nil, err
	}
	namespace := fmt.Sprintf("path-%d", n)
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := client.Post().AbsPath("/api/v1/namespaces").Body(created).Do(ctx).Error(); err != nil {
		return nil, err
	}
	p, err := newReplay(ctx, s, &clusterServer{client, namespace})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	err = r.walk(rand.New(rand.NewPCG(*pathSeed, uint64(n))), stepsOfPath, p)
	if p.err == nil {
		p.compareEnd()
	}
	if err := errors.Join(err, p.err); err != nil {
		return nil, fmt.Errorf("world %q:\n%s\n%w", w.Name, strings.Join(p.story, "\n"), err)
	}
	return p, nil
}

// startCluster starts a cluster of an API server alone, with the CustomResourceDefinitions of the
// module whose root the test runs in, and returns the path of its kubeconfig.
func startCluster(t *testing.T) string {
	t.Helper()
	program := os.Getenv("DEVCLUSTER_BIN")
	cluster, err := testcluster.StartCluster(t.Context(), program, filepath.Join(t.TempDir(), "data"), testcluster.ControlPlaneOnly)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("Output of devcluster (%v):\n%s", err, cluster.Log)
		}
	})
	if err := testcluster.InstallCRDs(t.Context(), program, cluster.Kubeconfig, "."); err != nil {
		t.Fatal(err)
	}
	return cluster.Kubeconfig
}

// pathWorlds have all acts and outcomes, and bounds far beyond those of an exploration.
func pathWorlds(owner *footest.OwnerRow) []World {
	outcomes := append([]Outcome{RefusedFromNow}, allOutcomes...)
	acts := append([]string{
		"create a api", "allow", "keep web", "release web",
		"drift api", "edit api", "strip api", "remove api", "hand api a", "take api", "keep api", "release api",
	}, allOfThem...)
	two := append([]string{
		"create b web", "create b api", "rename b web", "rename b api", "scale b", "delete b", "delete b foreground", "delete b orphan", "hand web b", "hand api b",
	}, acts...)
	return complete(owner,
		World{Name: "two controllers", About: "of one owner; they die and start again",
			Acts: acts, Users: 15, Faults: 8, Crashes: 2, Behind: 2, Controllers: 2, Outcomes: outcomes, Relists: true},
		World{Name: "two owners", About: "of the same children; handlers hear late",
			Owners: []string{"a", "b"}, Acts: two, Users: 20, Faults: 8, Outcomes: outcomes, EachWrite: true, HandlersLag: true},
		World{Name: "renames", About: "and little else, so that the controller comes to delete",
			Start: []string{"create a web"}, Acts: append([]string{"drift web", "edit api", "hand api a"}, ofOwner...), Users: 20, Faults: 2, Outcomes: outcomes},
	)
}
