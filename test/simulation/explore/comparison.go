// SPDX-License-Identifier: Apache-2.0

// The comparison of the model with a real API server: random paths of the model are
// translated, and replayed on that.

package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/footest"
)

// Comparison compares the model with a real API server.
type Comparison struct {
	// Worlds are those whose paths are replayed, in turn, and New makes their controllers.
	Worlds []World
	New    New
	// Server is the API server. It has the CustomResourceDefinitions, and nobody else
	// writes to the namespaces that are created for the paths.
	Server *rest.Config
	// Paths is how many are replayed, Steps how long each of them is at most, and Workers
	// how many are replayed at the same time.
	Paths, Steps, Workers int
	// Seed decides which paths: one and the same seed makes the same ones.
	Seed uint64
	// Progress is called about every five seconds. It may be nil.
	Progress func(*Conformity)
}

// Conformity is the result of a comparison.
type Conformity struct {
	// Paths is how many were replayed, Requests how many requests were sent for them, by
	// sender, verb and resource, Refused those that were answered with an error, by its
	// reason, too, and Events how many events were compared.
	Paths             int
	Requests, Refused map[string]int
	Events            int
	Elapsed           time.Duration
	// Differences are those found, one of each path at most.
	Differences []string
}

// maxDifferences is after how many paths that differ the comparison ends.
const maxDifferences = 3

// comparison is a comparison under way.
type comparison struct {
	*Comparison

	kube    kubernetes.Interface
	dynamic dynamic.Interface
	began   time.Time

	mu       sync.Mutex
	next     int
	found    Conformity
	reported time.Time
}

// Run compares.
func (c *Comparison) Run(ctx context.Context) (*Conformity, error) {
	run := &comparison{Comparison: c, began: time.Now(), found: Conformity{Requests: map[string]int{}, Refused: map[string]int{}}}
	var errs [2]error
	run.kube, errs[0] = kubernetes.NewForConfig(c.Server)
	run.dynamic, errs[1] = dynamic.NewForConfig(c.Server)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	failed := make([]error, max(c.Workers, 1))
	var workers sync.WaitGroup
	for w := range failed {
		workers.Go(func() { failed[w] = run.work(ctx) })
	}
	workers.Wait()
	run.found.Elapsed = time.Since(run.began)
	return &run.found, errors.Join(failed...)
}

// work replays paths until none is left.
func (c *comparison) work(ctx context.Context) error {
	var runners []*runner
	for _, w := range c.Worlds {
		s, err := newScene(w)
		if err != nil {
			return err
		}
		r, err := newRunner(s, c.New)
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
			return fmt.Errorf("path %d of the seed %d: %w", n, c.Seed, err)
		}
	}
}

func (c *comparison) takePath() (n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next >= c.Paths || len(c.found.Differences) >= maxDifferences {
		return 0, false
	}
	c.next++
	return c.next - 1, true
}

// replay makes a path, and replays it in a namespace of its own.
func (c *comparison) replay(ctx context.Context, r *runner, n int) error {
	path, err := r.walk(rand.New(rand.NewPCG(c.Seed, uint64(n))), c.Steps)
	if err != nil {
		return err
	}
	namespace := fmt.Sprintf("path-%d", n)
	_, err = c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	difference, err := r.replayOn(ctx, &clusterServer{c.dynamic, namespace}, namespace, path)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found.add(r.scene, path)
	if difference != "" {
		c.found.Differences = append(c.found.Differences, fmt.Sprintf("path %d of the seed %d, world %q:\n%s", n, c.Seed, r.Name, difference))
	}
	if c.Progress != nil && time.Since(c.reported) >= 5*time.Second {
		c.reported, c.found.Elapsed = time.Now(), time.Since(c.began)
		c.Progress(&c.found)
	}
	return nil
}

// add counts a path.
func (c *Conformity) add(s *scene, path []exchange) {
	c.Paths++
	for i := range path {
		e := &path[i]
		what := e.who + ": " + e.verb
		if e.subresource != "" {
			what += "-" + e.subresource
		}
		what += " " + s.kindOf(e.slot).Resource.Resource
		c.Requests[what]++
		c.Events += len(e.events)
		if e.err != nil {
			c.Refused[what+": "+string(apierrors.ReasonForError(e.err))]++
		}
	}
}

// String gives the figures.
func (c *Conformity) String() string {
	total, refused := 0, 0
	for _, n := range c.Requests {
		total += n
	}
	for _, n := range c.Refused {
		refused += n
	}
	return fmt.Sprintf("%d paths, %d requests (%d answered with an error), %d events, %d differences, %v",
		c.Paths, total, refused, c.Events, len(c.Differences), c.Elapsed.Round(time.Second))
}

// Table lists the requests by verb and resource, and the errors by their reason.
func (c *Conformity) Table() string {
	var lines []string
	for _, counts := range []map[string]int{c.Requests, c.Refused} {
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			lines = append(lines, fmt.Sprintf("%8d  %s", counts[what], what))
		}
	}
	return strings.Join(lines, "\n")
}

// translation is between the model and the server, for one path.
type translation struct {
	// namespace is that of the path on the server.
	namespace string
	// uids and versions are the server's by the model's, modelUIDs and modelVersions the
	// reverse.
	uids, modelUIDs         map[types.UID]types.UID
	versions, modelVersions map[string]string
	// newest is the server's newest version, and newestModel the model's.
	newest, newestModel uint64
}

func newTranslation(namespace string) *translation {
	return &translation{
		namespace: namespace, uids: map[types.UID]types.UID{}, modelUIDs: map[types.UID]types.UID{},
		versions: map[string]string{}, modelVersions: map[string]string{},
	}
}

// toServer returns what a request of the model sends, as it is sent to the server. What the
// model has from nowhere is an error.
func (t *translation) toServer(sent runtime.Object) (runtime.Object, error) {
	if sent == nil {
		return nil, nil
	}
	sent = sent.DeepCopyObject()
	if options, ok := sent.(*metav1.DeleteOptions); ok {
		return options, t.optionsToServer(options)
	}
	object, err := metaOf(sent), error(nil)
	object.SetNamespace(t.namespace)
	// The server keeps its own, of which only this client knows no value.
	object.SetDeletionTimestamp(nil)
	if uid := object.GetUID(); uid != "" {
		if uid, err = t.uid(uid); err != nil {
			return nil, err
		}
		object.SetUID(uid)
	}
	if version := object.GetResourceVersion(); version != "" {
		if version, err = t.version(version); err != nil {
			return nil, err
		}
		object.SetResourceVersion(version)
	}
	owners := object.GetOwnerReferences()
	for i := range owners {
		if owners[i].UID, err = t.uid(owners[i].UID); err != nil {
			return nil, err
		}
	}
	object.SetOwnerReferences(owners)
	return object, nil
}

func (t *translation) optionsToServer(options *metav1.DeleteOptions) (err error) {
	only := options.Preconditions
	if only == nil {
		return nil
	}
	if only.UID != nil {
		if *only.UID, err = t.uid(*only.UID); err != nil {
			return err
		}
	}
	if only.ResourceVersion != nil {
		*only.ResourceVersion, err = t.version(*only.ResourceVersion)
	}
	return err
}

func (t *translation) uid(model types.UID) (types.UID, error) {
	uid, known := t.uids[model]
	if !known {
		return "", fmt.Errorf("the model sends the UID %q, which no object ever had", model)
	}
	return uid, nil
}

func (t *translation) version(model string) (string, error) {
	version, known := t.versions[model]
	if !known {
		return "", fmt.Errorf("the model sends the resourceVersion %q, which no object ever had", model)
	}
	return version, nil
}

// toModel returns an object of the server in the model's terms. A UID and a version that
// are new on both sides become a pair; others stay as they are, and so differ.
func (t *translation) toModel(object, expected footest.Object) (footest.Object, error) {
	object = copyOf(object)
	if object.GetNamespace() == t.namespace {
		object.SetNamespace(footest.Namespace)
	}
	if err := t.learn(object, expected); err != nil {
		return nil, err
	}
	if uid, known := t.modelUIDs[object.GetUID()]; known {
		object.SetUID(uid)
	}
	if version, known := t.modelVersions[object.GetResourceVersion()]; known {
		object.SetResourceVersion(version)
	}
	owners := object.GetOwnerReferences()
	for i := range owners {
		if uid, known := t.modelUIDs[owners[i].UID]; known {
			owners[i].UID = uid
		}
	}
	object.SetOwnerReferences(owners)
	if object.GetDeletionTimestamp() != nil {
		object.SetDeletionTimestamp(&metav1.Time{Time: epoch})
	}
	object.SetManagedFields(nil)
	object.SetCreationTimestamp(metav1.Time{})
	return object, nil
}

// learn pairs what is new.
func (t *translation) learn(object, expected footest.Object) error {
	uid, model := object.GetUID(), expected.GetUID()
	if t.uids[model] == "" && t.modelUIDs[uid] == "" {
		t.uids[model], t.modelUIDs[uid] = uid, model
	}
	version, modelVersion := object.GetResourceVersion(), expected.GetResourceVersion()
	if t.versions[modelVersion] != "" || t.modelVersions[version] != "" {
		return nil
	}
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return fmt.Errorf("the resourceVersion of %s is no number: %w", object.GetName(), err)
	}
	modelNumber, err := strconv.ParseUint(modelVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("the model's resourceVersion of %s is no number: %w", object.GetName(), err)
	}
	if number > t.newest && modelNumber > t.newestModel {
		t.newest, t.newestModel = number, modelNumber
		t.versions[modelVersion], t.modelVersions[version] = version, modelVersion
	}
	return nil
}
