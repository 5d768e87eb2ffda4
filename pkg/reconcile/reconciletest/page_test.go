// SPDX-License-Identifier: Apache-2.0

// A second kind, Page, which owns a ConfigMap, and a small loop for it on packages plan and table.

package reconciletest

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PageSpec   `json:"spec"`
	Status PageStatus `json:"status,omitempty"`
}

type PageSpec struct {
	Name string `json:"name"`
	Text string `json:"text,omitempty"`
}

type PageStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (p *Page) GetSpec() any                         { return &p.Spec }
func (p *Page) GetStatus() any                       { return &p.Status }
func (p *Page) IsSuspended() bool                    { return false }
func (p *Page) GetConditions() []metav1.Condition    { return p.Status.Conditions }
func (p *Page) SetConditions(all []metav1.Condition) { p.Status.Conditions = all }
func (p *Page) GetObservedGeneration() int64         { return p.Status.ObservedGeneration }
func (p *Page) SetObservedGeneration(g int64)        { p.Status.ObservedGeneration = g }
func (p *Page) ResetProgress()                       {}

func (p *Page) DeepCopyObject() runtime.Object {
	c := *p
	c.ObjectMeta, c.Status.Conditions = *p.ObjectMeta.DeepCopy(), append([]metav1.Condition(nil), p.Status.Conditions...)
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
	Keep: func(kept, found *corev1.ConfigMap) { kept.Data = found.Data },
}

var pages = plan.Kind{Name: "Page", Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "pages"}}

// declaredPages returns the kind for those who do not read or write.
func declaredPages() *plan.Kind {
	kind := pages
	kind.Children = append(kind.Children, configMap.Of(&kind))
	return &kind
}

// pageLoop is a controller of Pages, which may have a defect.
type pageLoop struct {
	defect

	kind  *table.Kind
	pages func(namespace string) *gentype.ClientWithList[*Page, *PageList]
	kube  kubernetes.Interface
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// defect is what a controller does wrong.
type defect struct{ noPrecondition, noRequeue, rewrites, trustsCache bool }

// startPages returns a function that runs a controller.
func startPages(d defect) Start {
	return func(ctx context.Context, client rest.Interface, _ record.EventRecorder) error {
		l := &pageLoop{defect: d, kube: kubernetes.New(client)}
		l.pages = func(namespace string) *gentype.ClientWithList[*Page, *PageList] {
			return gentype.NewClientWithList("pages", client, scheme.ParameterCodec, namespace, func() *Page { return &Page{} }, func() *PageList { return &PageList{} })
		}
		l.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](10*time.Millisecond, 5*time.Second))
		pageInformer := cache.NewSharedIndexInformer(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return l.pages("").List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return l.pages("").Watch(ctx, o)
			},
		}, &Page{}, ResyncPeriod, cache.Indexers{})
		factory := informers.NewSharedInformerFactory(l.kube, 0)
		configMaps := factory.Core().V1().ConfigMaps().Informer()
		l.kind = table.Of(pages, pageInformer, l.pages, table.Owns(configMap, configMaps, l.kube.CoreV1().ConfigMaps))
		return l.run(ctx, pageInformer, configMaps)
	}
}

func (l *pageLoop) run(ctx context.Context, pages, configMaps cache.SharedIndexInformer) error {
	addChild := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		child := object.(plan.Object)
		if key, ok := l.kind.HolderKey(child); ok {
			l.queue.Add(key)
		}
		if key, ok := l.kind.AdopterKey(child); ok {
			l.queue.Add(key)
		}
		for _, key := range l.kind.AskingFor(l.kind.Rows[0], cache.MetaObjectToName(child), 100) {
			l.queue.Add(key)
		}
	}
	add := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			l.queue.Add(key)
		}
	}
	err := l.kind.Prepare()
	handler := func(add func(any)) cache.ResourceEventHandlerFuncs {
		return cache.ResourceEventHandlerFuncs{AddFunc: add, DeleteFunc: add, UpdateFunc: func(before, after any) {
			add(before)
			add(after)
		}}
	}
	_, pagesErr := pages.AddEventHandler(handler(add))
	_, childErr := configMaps.AddEventHandler(handler(addChild))
	err = errors.Join(err, pagesErr, childErr)
	var wg sync.WaitGroup
	wg.Go(func() { pages.RunWithContext(ctx) })
	wg.Go(func() { configMaps.RunWithContext(ctx) })
	wg.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), pages.HasSynced, configMaps.HasSynced) {
			for l.next(ctx) {
			}
		}
	})
	<-ctx.Done()
	l.queue.ShutDown()
	wg.Wait()
	return err
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
	find := func(of *plan.ChildKind) plan.Found { return l.kind.Find(of, cached) }
	if !l.rewrites && !needsWrites(l.kind.NewWorld(cached, find)) {
		return nil
	}
	page, err := l.pages(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	all, listErr := l.kube.CoreV1().ConfigMaps(key.Namespace).List(ctx, metav1.ListOptions{})
	if err := errors.Join(err, listErr); err != nil {
		return err
	}
	world := l.kind.NewWorld(page, func(row *plan.ChildKind) (found plan.Found) {
		for i := range all.Items {
			child := &all.Items[i]
			if l.kind.IsControlledBy(child, page) {
				found.Controlled = append(found.Controlled, child)
			}
			if child.Name == row.Name(page) {
				found.Named = child
			}
		}
		return found
	})
	if l.trustsCache {
		world = l.kind.NewWorld(page, find)
	}
	for step := range world.Steps() {
		world.Record(step, l.take(ctx, step))
	}
	if err := world.Err(); err != nil {
		return err
	}
	after := world.Status(metav1.Now()).(*Page)
	if !plan.IsAtRest(after) {
		l.queue.AddAfter(key, 5*time.Second) // the event that ends it may be lost, if its object was never in the cache
	}
	if !l.rewrites && equality.Semantic.DeepEqual(after.Status, page.Status) {
		return nil
	}
	_, err = l.pages(key.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	return err
}

// needsWrites reports whether there is anything to write by the caches.
func needsWrites(world *plan.World) bool {
	for step := range world.Steps() {
		world.Record(step, step.AsFound())
		switch step.Action {
		case plan.ActionCreate, plan.ActionUpdate, plan.ActionAdopt, plan.ActionDelete:
			return true
		}
	}
	return !equality.Semantic.DeepEqual(world.Status(metav1.Now()).GetStatus(), world.Owner.GetStatus())
}

func (l *pageLoop) take(ctx context.Context, step *plan.Step) (outcome plan.Outcome) {
	configMaps := l.kube.CoreV1().ConfigMaps(step.Key.Namespace)
	var child *corev1.ConfigMap
	switch step.Action {
	case plan.ActionCreate:
		child, outcome.Err = configMaps.Create(ctx, step.Desired(step.Owner, step.Earlier(), step.View).(*corev1.ConfigMap), metav1.CreateOptions{})
	case plan.ActionUpdate, plan.ActionAdopt:
		desired := step.DesiredUpdate(step.Found, step.Owner, step.View).(*corev1.ConfigMap)
		if l.noPrecondition {
			desired.ResourceVersion = ""
		}
		child, outcome.Err = configMaps.Update(ctx, desired, metav1.UpdateOptions{})
	case plan.ActionDelete:
		// The Page may want it again since it was read.
		page, err := l.pages(step.Key.Namespace).Get(ctx, step.Owner.GetName(), metav1.GetOptions{})
		if err != nil || page.UID != step.Owner.GetUID() || page.Generation != step.Owner.GetGeneration() {
			outcome.Err = errors.Join(err, errors.New("the Page changed"))
			return outcome
		}
		options := metav1.DeleteOptions{}
		if !l.noPrecondition {
			options.Preconditions = metav1.NewUIDPreconditions(string(step.Found.GetUID()))
		}
		outcome.Err = configMaps.Delete(ctx, step.Key.Name, options)
	default:
		return step.AsFound()
	}
	if outcome.Err == nil && child != nil {
		outcome.Child, outcome.Drift = child, step.DescribeDrift(child, step.Owner, step.View)
	}
	return outcome
}
