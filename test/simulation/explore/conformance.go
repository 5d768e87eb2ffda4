// SPDX-License-Identifier: Apache-2.0

// Conformance: random paths are replayed on a real API server, which must answer, store and
// announce what the model does.

package explore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

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
	// maxDifferences is after how many paths that differ the comparison ends.
	maxDifferences = 3
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
	config, err := testcluster.LoadConfig(startCluster(t))
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{worlds: pathWorlds(owner), create: create, counts: map[string]int{}}
	var errs [2]error
	c.kube, errs[0] = kubernetes.NewForConfig(config)
	c.dynamic, errs[1] = dynamic.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	var failed [pathWorkers]error
	var workers sync.WaitGroup
	for w := range failed {
		workers.Go(func() { failed[w] = c.work(t.Context()) })
	}
	workers.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("explore-conformance: %s\n", c)
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		if testing.Verbose() {
			fmt.Printf("%8d  %s\n", c.counts[what], what)
		}
	}
	for _, difference := range c.differences {
		t.Error(difference)
	}
}

// comparison is a comparison of the model with a real API server. Nobody else writes to the
// namespaces that it creates for the paths.
type comparison struct {
	// worlds are those whose paths are replayed, in turn, and create makes their controllers.
	worlds  []World
	create  New
	kube    kubernetes.Interface
	dynamic dynamic.Interface

	mu sync.Mutex
	// next is the number of the next path, and done how many have been replayed, with how many
	// requests and events.
	next, done, requests, events int
	// counts are those of the replays.
	counts map[string]int
	// differences are those found, one of each path at most.
	differences []string
}

// String gives the figures.
func (c *comparison) String() string {
	return fmt.Sprintf("%d paths, %d requests, %d events, %d differences", c.done, c.requests, c.events, len(c.differences))
}

// work replays paths until none is left.
func (c *comparison) work(ctx context.Context) error {
	var runners []*runner
	for _, w := range c.worlds {
		s, err := newScene(w)
		if err != nil {
			return err
		}
		r, err := newRunner(s, c.create)
		if err != nil {
			return err
		}
		runners = append(runners, r)
	}
	for {
		n, ok := c.takePath()
		if !ok {
			return nil
		}
		if err := c.replay(ctx, runners[n%len(runners)], n); err != nil {
			return fmt.Errorf("path %d of the seed %d: %w", n, *pathSeed, err)
		}
	}
}

func (c *comparison) takePath() (n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next >= *paths || len(c.differences) >= maxDifferences {
		return 0, false
	}
	c.next++
	return c.next - 1, true
}

// replay makes a path, and replays it in a namespace of its own.
func (c *comparison) replay(ctx context.Context, r *runner, n int) error {
	namespace := fmt.Sprintf("path-%d", n)
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := c.kube.CoreV1().Namespaces().Create(ctx, created, metav1.CreateOptions{}); err != nil {
		return err
	}
	p, err := newReplay(ctx, r.scene, &clusterServer{c.dynamic, namespace}, namespace)
	if err != nil {
		return err
	}
	defer p.stop()
	err = r.walk(rand.New(rand.NewPCG(*pathSeed, uint64(n))), stepsOfPath, p)
	if !p.hasEnded() {
		p.compareEnd()
	}
	if err := errors.Join(err, p.err); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(p.story, "\n"))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done, c.requests, c.events = c.done+1, c.requests+len(p.story), c.events+p.events
	for what, count := range p.counts {
		c.counts[what] += count
	}
	if len(p.differences) > 0 {
		text := strings.Join(append(p.story, p.differences...), "\n")
		c.differences = append(c.differences, fmt.Sprintf("path %d of the seed %d, world %q:\n%s", n, *pathSeed, r.Name, text))
	}
	if c.done%20 == 0 {
		fmt.Fprintf(os.Stderr, "explore-conformance: %d %%: %s\n", 100*c.done / *paths, c)
	}
	return nil
}

// startCluster starts a cluster of an API server alone, with the CustomResourceDefinitions of the
// module whose root the test runs in, and returns its kubeconfig.
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
			Owners: []string{"a", "b"}, Acts: two, Users: 20, Faults: 8, Outcomes: outcomes, Rollouts: EachWrite, HandlersLag: true},
		World{Name: "renames", About: "and little else, so that the controller comes to delete",
			Start: []string{"create a web"}, Acts: append([]string{"drift web", "edit api", "hand api a"}, ofOwner...), Users: 20, Faults: 2, Outcomes: outcomes},
	)
}
