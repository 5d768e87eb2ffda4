// SPDX-License-Identifier: Apache-2.0

// A second kind, Page, which owns a ConfigMap and a Secret, and a small loop for it on packages plan and table.

package reconciletest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

// Page asks for a ConfigMap with a text.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   PageSpec   `json:"spec"`
	Status PageStatus `json:"status,omitzero"`
}

type PageSpec struct {
	Name string `json:"name"`
	Text string `json:"text,omitempty"`
	// Parts is the number of Deployments of a gallery: see gallery_test.go.
	Parts int32 `json:"parts,omitempty"`
}

type PageStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	LastHandledSync    string             `json:"lastHandledSync,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (p *Page) GetSpec() any                         { return &p.Spec }
func (p *Page) GetStatus() any                       { return &p.Status }
func (p *Page) IsSuspended() bool                    { return false }
func (p *Page) GetConditions() []metav1.Condition    { return p.Status.Conditions }
func (p *Page) SetConditions(all []metav1.Condition) { p.Status.Conditions = all }
func (p *Page) GetObservedGeneration() int64         { return p.Status.ObservedGeneration }
func (p *Page) SetObservedGeneration(g int64)        { p.Status.ObservedGeneration = g }
func (p *Page) GetLastHandledSync() string           { return p.Status.LastHandledSync }
func (p *Page) SetLastHandledSync(request string)    { p.Status.LastHandledSync = request }
func (p *Page) ResetProgress()                       {}

func (p *Page) DeepCopyObject() runtime.Object {
	c := *p
	p.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(p.Status.Conditions)
	return &c
}

type PageList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Page
}

func (l *PageList) DeepCopyObject() runtime.Object { return l }

var configMap = plan.Row[*Page, *corev1.ConfigMap]{
	Kind: "ConfigMap", Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), NamedBy: "spec.name",
	Name: func(page *Page) string { return page.Spec.Name },
	SetOwned: func(child *corev1.ConfigMap, page *Page, _ *plan.View) {
		if child.Data == nil {
			child.Data = map[string]string{}
		}
		child.Data["text"] = page.Spec.Text
	},
	Keep:   func(kept, found *corev1.ConfigMap) { kept.Data = found.Data },
	Blocks: true,
}

// secret has the text of the ConfigMap.
var secret = plan.Row[*Page, *corev1.Secret]{
	Kind: "Secret", Resource: corev1.SchemeGroupVersion.WithResource("secrets"),
	Name: func(page *Page) string { return page.Name },
	SetOwned: func(child *corev1.Secret, _ *Page, view *plan.View) {
		if of := view.Child("ConfigMap"); of != nil {
			child.Data = map[string][]byte{of.GetName(): []byte(of.(*corev1.ConfigMap).Data["text"])}
		}
	},
	Keep: func(kept, found *corev1.Secret) { kept.Data = found.Data },
}

var pages = plan.Kind{Name: "Page", Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "pages"}}

// declaredPages returns the kind for those who do not read or write.
func declaredPages() *plan.Kind {
	kind := pages
	kind.Children = []*plan.ChildKind{configMap.Of(&kind), secret.Of(&kind)}
	return &kind
}

// pageLoop is a controller of Pages, which may have a defect.
type pageLoop struct {
	defect

	kind *table.Kind
	// known are the objects that Pages name, as last read, and nil for one that is missing.
	known map[string]plan.Object
	kube  kubernetes.Interface
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// defect is what a controller does wrong.
type defect struct {
	noPrecondition, noRequeue, rewrites, trustsCache                   bool
	allAtOnce, firstFirst, readsOnce, staysReady, reveals, writesNamed bool
}

// pageTable declares a table of Pages, whose informers are those that it lists.
type pageTable func(client rest.Interface, factory informers.SharedInformerFactory, d defect) (rows []table.Row[*Page], informers []cache.SharedIndexInformer)

func plainPages(client rest.Interface, factory informers.SharedInformerFactory, _ defect) ([]table.Row[*Page], []cache.SharedIndexInformer) {
	kube := kubernetes.New(client)
	core := factory.Core().V1()
	return []table.Row[*Page]{
		table.Owns(configMap, core.ConfigMaps().Informer(), kube.CoreV1().ConfigMaps),
		table.Owns(secret, core.Secrets().Informer(), kube.CoreV1().Secrets),
	}, []cache.SharedIndexInformer{core.ConfigMaps().Informer(), core.Secrets().Informer()}
}

// startPages returns a function that runs a controller.
func startPages(declare pageTable, d defect) Start {
	return func(ctx context.Context, client rest.Interface, _ record.EventRecorder) error {
		kube := kubernetes.New(client)
		in := func(namespace string) *gentype.ClientWithList[*Page, *PageList] {
			return gentype.NewClientWithList("pages", client, scheme.ParameterCodec, namespace, func() *Page { return &Page{} }, func() *PageList { return &PageList{} })
		}
		informer := cache.NewSharedIndexInformer(&cache.ListWatch{
			ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return in("").List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return in("").Watch(ctx, o) },
		}, &Page{}, ResyncPeriod, cache.Indexers{})
		children, others := declare(client, informers.NewSharedInformerFactory(kube, 0), d)
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](10*time.Millisecond, 4*time.Second)
		l := &pageLoop{defect: d, known: map[string]plan.Object{}, kube: kube, queue: workqueue.NewTypedRateLimitingQueue(limiter), kind: table.Of(pages, informer, in, children...)}
		return l.run(ctx, append([]cache.SharedIndexInformer{informer}, others...)...)
	}
}

// gather is how long a sync waits for the other events of its moment, which arrive in any order: with them all, each run
// makes the same calls. No sum of the times of events equals a sum of it.
const gather = 313 * time.Microsecond

// run syncs each Page after each event.
func (l *pageLoop) run(ctx context.Context, informers ...cache.SharedIndexInformer) error {
	var wg sync.WaitGroup
	add := func(any) {
		for _, page := range l.kind.Owners.Cache.List() {
			l.queue.AddAfter(cache.MetaObjectToName(page.(*Page)), gather)
		}
	}
	errs := []error{table.Prepare(l.kind)}
	for _, informer := range informers {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, _ any) { add(nil) }, DeleteFunc: add})
		errs = append(errs, err)
		wg.Go(func() { informer.RunWithContext(ctx) })
		cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) // one after the other: each run makes the same calls
	}
	wg.Go(func() {
		for l.next(ctx) {
		}
	})
	<-ctx.Done()
	l.queue.ShutDown()
	wg.Wait()
	return errors.Join(errs...)
}

func (l *pageLoop) next(ctx context.Context) bool {
	key, end := l.queue.Get()
	if end {
		return false
	}
	defer l.queue.Done(key)
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if err := l.sync(ctx, key); err != nil && !l.noRequeue {
		l.queue.AddRateLimited(key)
		return true
	}
	l.queue.Forget(key)
	return true
}

// sync writes by what it reads live, if the caches say that there is anything to write.
func (l *pageLoop) sync(ctx context.Context, key cache.ObjectName) error {
	cached := l.kind.Owner(key)
	if cached == nil {
		return nil
	}
	find := func(of *plan.ChildKind) plan.Found {
		if of.IsReference() {
			return plan.Found{Known: func(key cache.ObjectName) (plan.Outcome, bool) { return l.knownOf(l.kind.Row(of), key) }}
		}
		return l.kind.Find(of, cached)
	}
	if !l.rewrites && !needsWrites(l.kind.NewWorld(cached, find)) {
		return nil
	}
	page, err := l.kind.Owners.Get(ctx, key, metav1.GetOptions{})
	if err != nil {
		return err // if it is gone, the cache shows that before long
	}
	var errs []error
	world := l.kind.NewWorld(page, func(of *plan.ChildKind) plan.Found {
		if l.trustsCache {
			return l.kind.Find(of, page)
		}
		found, err := l.findLive(ctx, of, page)
		errs = append(errs, err)
		return found
	})
	for step := range world.Steps() {
		if err := errors.Join(errs...); err != nil {
			return err
		}
		world.Record(step, l.take(ctx, step))
	}
	if err := errors.Join(append(errs, world.Err())...); err != nil {
		return err
	}
	after := world.Status(metav1.Now())
	if l.staysReady && plan.SaysReady(page) {
		return nil
	}
	if !plan.IsAtRest(after) {
		l.queue.AddAfter(key, 5*time.Second) // the event that ends it may be lost, if its object was never in the cache
	}
	if !l.rewrites && equality.Semantic.DeepEqual(after.GetStatus(), page.GetStatus()) {
		return nil
	}
	_, err = l.kind.Owners.UpdateStatus(ctx, after, metav1.UpdateOptions{})
	return err
}

// findLive reads the child that a Page wants, and those that the caches have.
func (l *pageLoop) findLive(ctx context.Context, of *plan.ChildKind, page plan.Owner) (found plan.Found, err error) {
	live := map[string]plan.Object{}
	found.Named = func(key cache.ObjectName) plan.Object { return live[key.Name] }
	found.Owner = l.kind.Owner
	row, names := l.kind.Row(of), sets.New(of.NamesFor(page)...)
	if of.IsReference() {
		return l.read(ctx, row, page)
	}
	for _, child := range l.kind.ControlledBy(row, page) {
		names.Insert(child.GetName())
	}
	for _, name := range sets.List(names) {
		child, err := row.Get(ctx, cache.ObjectName{Namespace: page.GetNamespace(), Name: name}, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return found, err
		}
		if l.kind.IsControlledBy(child, page) {
			found.Controlled = append(found.Controlled, child)
		}
		live[name] = child
	}
	return found, nil
}

// needsWrites reports whether there is anything to write by the caches.
func needsWrites(world *plan.World) bool {
	for step := range world.Steps() {
		world.Record(step, step.AsFound())
		switch step.Action {
		case plan.ActionRead, plan.ActionCreate, plan.ActionUpdate, plan.ActionAdopt, plan.ActionDelete:
			return true
		}
	}
	return !equality.Semantic.DeepEqual(world.Status(metav1.Now()).GetStatus(), world.Owner.GetStatus())
}

func (l *pageLoop) take(ctx context.Context, step *plan.Step) (outcome plan.Outcome) {
	row := l.kind.Row(step.ChildKind)
	switch step.Action {
	case plan.ActionCreate:
		outcome.Child, outcome.Err = row.Create(ctx, step.NewChild(step.Earlier()), metav1.CreateOptions{})
	case plan.ActionUpdate, plan.ActionAdopt:
		desired := step.DesiredUpdate(step.Found, step.Owner, step.View)
		if l.noPrecondition {
			desired.SetResourceVersion("")
		}
		kind, patch, err := step.Patch(step.Found, desired)
		if err != nil {
			return plan.Outcome{Err: err}
		}
		outcome.Child, outcome.Err = row.Patch(ctx, step.Key, kind, patch, metav1.PatchOptions{})
	case plan.ActionDelete:
		if l.firstFirst {
			step = l.first(step)
		}
		// The Page may want it again since it was read.
		page, err := l.kind.Owners.Get(ctx, cache.MetaObjectToName(step.Owner), metav1.GetOptions{})
		if err != nil || page.GetUID() != step.Owner.GetUID() || page.GetGeneration() != step.Owner.GetGeneration() {
			return plan.Outcome{Err: errors.Join(err, errors.New("the Page changed"))}
		}
		options := metav1.DeleteOptions{}
		if !l.noPrecondition {
			options.Preconditions = metav1.NewUIDPreconditions(string(step.Found.GetUID()))
		}
		outcome.Err = row.Delete(ctx, step.Key, options)
	default:
		return step.AsFound()
	}
	if outcome.Child != nil {
		outcome.Drift = step.DescribeDrift(outcome.Child, step.Owner, step.View)
	}
	return outcome
}
