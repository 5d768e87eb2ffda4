// SPDX-License-Identifier: Apache-2.0

// Conformance: random walks, and whether the model of the API server answers and stores as
// a real one does.

package explore

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

var (
	paths    = flag.Int("explore.paths", 60, "how many paths to replay on a real API server")
	pathSeed = flag.Uint64("explore.paths-seed", 1, "which paths to replay on a real API server")
)

// stepsOfPath is how long a path is at most. Most make 60 to 80 requests.
const stepsOfPath = 200

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
	found, err := (&Comparison{
		Worlds: pathWorlds(owner), New: create, Server: config, Paths: *paths, Steps: stepsOfPath, Workers: 4, Seed: *pathSeed,
		Progress: func(so *Conformity) {
			fmt.Fprintf(os.Stderr, "explore-conformance: %d %%: %s\n", 100*so.Paths / *paths, so)
		},
	}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("explore-conformance: %s\n", found)
	if testing.Verbose() {
		fmt.Println(found.Table())
	}
	for _, difference := range found.Differences {
		t.Error(difference)
	}
}

// startCluster starts a cluster of an API server alone, with the CustomResourceDefinitions,
// and returns its kubeconfig.
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
	if err := testcluster.InstallCRDs(t.Context(), program, cluster.Kubeconfig, moduleRoot(t)); err != nil {
		t.Fatal(err)
	}
	return cluster.Kubeconfig
}

// moduleRoot returns the folder of go.mod, in or above that of the test.
func moduleRoot(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("there is no go.mod in the folder of the test, or above it")
		}
		folder = parent
	}
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

// exchange is a request that has reached the API server, with what it did.
type exchange struct {
	*request

	// who sent it, and in which step.
	who, step string
	// returned and err are the answer.
	returned footest.Object
	err      error
	// events are those of the request, and stored is the object after it, or nil.
	events []event
	stored *object
}

// walk takes random steps from the beginning of the world, at most as many as it may, and
// returns the requests that reached the API server.
func (r *runner) walk(random *rand.Rand, steps int) ([]exchange, error) {
	var path []exchange
	who, step := "the start", "the start"
	r.served = func(x explored, sent *request, before int64, returned footest.Object, err error) {
		done := x.exchange(sent, before, returned, err)
		done.who, done.step = who, step
		path = append(path, done)
	}
	defer func() { r.served = nil }()
	current, err := r.begin()
	if err != nil {
		return nil, err
	}
	for range steps {
		x := explored{current.clone(), r.scene}
		if sent := x.resend(random, path); sent != nil && random.IntN(oneResent) == 0 {
			who, step = "somebody else", "somebody else"
			_, _ = x.serve(sent)
			x.trim()
			current = x.state
			continue
		}
		next, ok := x.choose(random)
		if !ok {
			break
		}
		who, step = next.sender(), x.describeStep(next)
		current = r.take(current, next)
	}
	return path, nil
}

// sender says who sends requests in a step.
func (s step) sender() string {
	switch s.op {
	case opAct:
		return "user"
	case opControlPlane:
		return "control plane"
	default:
		return "controller"
	}
}

// exchange returns what a request did.
func (x explored) exchange(sent *request, before int64, returned footest.Object, err error) exchange {
	kept := *sent
	if sent.sent != nil {
		kept.sent = sent.sent.DeepCopyObject()
	}
	done := exchange{request: &kept, err: err, stored: x.store[sent.slot]}
	if err == nil && returned != nil {
		done.returned = copyOf(returned)
	}
	for _, events := range x.events {
		for _, e := range events {
			if e.version > before {
				done.events = append(done.events, e)
			}
		}
	}
	return done
}

// oneResent is how many steps there are for one request of resend.
const oneResent = 12

// startsAtMost is how many starts a step can tell apart.
const startsAtMost = 1 << 8

// choose returns a random step: first what kind of step, so that the many outcomes of a
// call don't crowd out the rest. Users and faults are rare, so that the controller comes to
// something between them.
func (x explored) choose(random *rand.Rand) (chosen step, ok bool) {
	bySystem, others := map[op][]step{}, map[op][]step{}
	for _, s := range x.steps() {
		switch {
		case s.op == opStart:
			// At once, before further events make more starts than a step can tell apart.
			return s, true
		case s.op == opCrash && x.starts() >= startsAtMost:
		case s.bySystem():
			bySystem[s.op] = append(bySystem[s.op], s)
		default:
			others[s.op] = append(others[s.op], s)
		}
	}
	from := bySystem
	if len(bySystem) == 0 || len(others) > 0 && random.IntN(6) == 0 {
		from = others
	}
	if len(from) == 0 {
		return step{}, false
	}
	kinds := slices.Sorted(maps.Keys(from))
	among := from[kinds[random.IntN(len(kinds))]]
	return among[random.IntN(len(among))], true
}

// starts is how many ways to start there are after a crash now.
func (x explored) starts() int {
	starts := 1
	for resource := range x.events {
		starts *= len(x.events[resource]) + 1
	}
	return starts
}

// clusterServer is the API server of a cluster, in a namespace.
type clusterServer struct {
	client    dynamic.Interface
	namespace string
}

func typeOf(kind *footest.Kind) schema.GroupVersionKind {
	return kind.Resource.GroupVersion().WithKind(kind.Kind)
}

func (c *clusterServer) do(ctx context.Context, kind *footest.Kind, name string, sent *request) (footest.Object, error) {
	client := c.client.Resource(kind.Resource).Namespace(c.namespace)
	var returned *unstructured.Unstructured
	var err error
	switch sent.verb {
	case "get":
		returned, err = client.Get(ctx, name, metav1.GetOptions{})
	case "delete":
		options, _ := sent.sent.(*metav1.DeleteOptions)
		return nil, client.Delete(ctx, name, *options)
	default:
		object, badObject := untyped(kind, sent.sent)
		if badObject != nil {
			return nil, badObject
		}
		if sent.verb == "create" {
			returned, err = client.Create(ctx, object, metav1.CreateOptions{})
			break
		}
		var subresources []string
		if sent.subresource != "" {
			subresources = append(subresources, sent.subresource)
		}
		returned, err = client.Update(ctx, object, metav1.UpdateOptions{}, subresources...)
	}
	if err != nil {
		return nil, err
	}
	return typed(kind, returned)
}

func untyped(kind *footest.Kind, object runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind, err)
	}
	converted := &unstructured.Unstructured{Object: fields}
	converted.SetGroupVersionKind(typeOf(kind))
	return converted, nil
}

// typed returns an object as one of its Go type, as clients do: without the kind. A field
// that the type does not have is an error.
func typed(kind *footest.Kind, object *unstructured.Unstructured) (footest.Object, error) {
	if got := object.GroupVersionKind(); got != typeOf(kind) {
		return nil, fmt.Errorf("%s %s is a %s", kind, object.GetName(), got)
	}
	example := runtime.Object(kind.Owner().Asking("a", "a", 1))
	if !kind.Is(example) {
		example = kind.ForeignNamed("a")
	}
	converted := reflect.New(reflect.TypeOf(example).Elem()).Interface().(footest.Object) //nolint:forcetypeassert // as the example
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, converted, true); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, object.GetName(), err)
	}
	converted.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return converted, nil
}

// watch watches a kind. The namespace is new, so that the cache of the API server has no
// objects of it that are older than the watch.
func (c *clusterServer) watch(ctx context.Context, kind *footest.Kind) (watch.Interface, error) {
	events, err := c.client.Resource(kind.Resource).Namespace(c.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
		object, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Error {
			return e, true
		}
		converted, err := typed(kind, object)
		if err != nil {
			return watch.Event{Type: watch.Error, Object: &metav1.Status{Message: err.Error()}}, true
		}
		return watch.Event{Type: e.Type, Object: converted}, true
	}), nil
}
