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
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
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
// differently from the model.
func TestConformance(t *testing.T, owner *rows.OwnerRow, create New) {
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

// replayPath makes a path of a world, and replays it in its own namespace. No one else writes
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
func pathWorlds(owner *rows.OwnerRow) []World {
	outcomes := append([]Outcome{RefusedFromNow}, allOutcomes...)
	acts := append([]string{
		"create a api", "allow", "keep web", "release web",
		"drift api", "edit api", "strip api", "remove api", "hand api a", "take api", "keep api", "release api",
	}, allOfThem...)
	two := append([]string{
		"create b web", "create b api", "rename b web", "rename b api", "scale b", "delete b", "delete b foreground", "delete b orphan", "hand web b", "hand api b",
	}, acts...)
	return complete(owner,
		World{Name: "two controllers",
			Acts: acts, Users: 15, Faults: 8, Crashes: 2, Behind: 2, Controllers: 2, Outcomes: outcomes, Relists: true},
		World{Name: "two owners",
			Owners: []string{"a", "b"}, Acts: two, Users: 20, Faults: 8, Outcomes: outcomes, EachWrite: true, HandlersLag: true},
		World{Name: "renames", // and little else, so that the controller comes to delete
			Start: []string{"create a web"}, Acts: append([]string{"drift web", "edit api", "hand api a"}, ofOwner...), Users: 20, Faults: 2, Outcomes: outcomes},
	)
}

// newObjectClient returns a client for objects of all types, which are sent and returned as Go has
// them. A field that a type does not have is an error.
func newObjectClient(kubeconfig string) (rest.Interface, error) {
	config, err := testcluster.LoadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	types := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(types), fooscheme.AddToScheme(types)); err != nil {
		return nil, err
	}
	config.GroupVersion = &schema.GroupVersion{Version: "v1"} // that of the options of a delete
	config.NegotiatedSerializer = serializer.NewCodecFactory(types, serializer.EnableStrict).WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// clusterServer is the API server of a cluster, in a namespace.
type clusterServer struct {
	client    rest.Interface
	namespace string
}

// request begins a request about the objects of a kind.
func (c *clusterServer) request(verb string, kind *rows.Kind) *rest.Request {
	group := []string{"apis", kind.Resource.Group}
	if kind.Resource.Group == "" {
		group = []string{"api"}
	}
	return c.client.Verb(verb).AbsPath(append(group, kind.Resource.Version)...).Namespace(c.namespace).Resource(kind.Resource.Resource)
}

func (c *clusterServer) do(ctx context.Context, sent model.Request) (rows.Object, error) {
	method := map[string]string{"get": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut, "delete": http.MethodDelete}[sent.Verb]
	request := c.request(method, sent.Kind)
	if sent.Verb != "create" {
		request.Name(sent.Name).SubResource(sent.Subresource)
	}
	if sent.Sent != nil {
		request.Body(c.toServer(sent.Sent))
	}
	answer := request.Do(ctx)
	if err := answer.Error(); err != nil || sent.Verb == "delete" {
		return nil, err
	}
	returned, err := answer.Get()
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", sent, err)
	}
	return toModel(metaOf(returned)), nil
}

// watch watches a kind. The namespace is new, so that the cache of the API server has no
// objects of it that are older than the watch.
func (c *clusterServer) watch(ctx context.Context, kind *rows.Kind) (watch.Interface, error) {
	options := metav1.ListOptions{ResourceVersion: "0", Watch: true}
	events, err := c.request(http.MethodGet, kind).VersionedParams(&options, kubescheme.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
		if object, ok := e.Object.(rows.Object); ok {
			e.Object = toModel(object)
		}
		return e, true
	}), nil
}

// toServer returns what is sent as it is sent to the server.
func (c *clusterServer) toServer(sent runtime.Object) runtime.Object {
	sent = sent.DeepCopyObject()
	switch sent := sent.(type) {
	case rows.Object:
		sent.SetNamespace(c.namespace)
		// The server keeps its own, of which only this client knows no value.
		sent.SetDeletionTimestamp(nil)
		sent.SetResourceVersion(serverVersion(sent.GetResourceVersion()))
	case *metav1.DeleteOptions:
		if only := sent.Preconditions; only != nil && only.ResourceVersion != nil {
			only.ResourceVersion = new(serverVersion(*only.ResourceVersion))
		}
	}
	return sent
}

// serverVersion returns a version of the model as the server has it.
func serverVersion(text string) string {
	if version, ok := parseVersion(text); ok {
		return strconv.FormatInt(version, 10)
	}
	return text
}

// toModel changes an object of the server into one of the model: with versions of as many digits, and
// without what the model does not have. A version that is no number stays, and so differs.
func toModel(object rows.Object) rows.Object {
	if version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64); err == nil {
		object.SetResourceVersion(versionText(version))
	}
	object.SetNamespace(rows.Namespace)
	if object.GetDeletionTimestamp() != nil {
		object.SetDeletionTimestamp(&metav1.Time{Time: epoch})
	}
	object.SetManagedFields(nil)
	object.SetCreationTimestamp(metav1.Time{})
	return object
}
