// SPDX-License-Identifier: Apache-2.0

// Package table puts what package plan declares beside the informers and the generated clients of
// each kind. The compiler checks that they fit: a client of another kind, or a row for another
// owner, does not compile.
//
//	table.Of(plan.Kind{Name: "Foo", Resource: ...}, informers.Foos().Informer(), clientset.SamplecontrollerV1alpha1().Foos,
//		table.Owns(deployment, kubeInformers.Apps().V1().Deployments().Informer(), kubeClient.AppsV1().Deployments))
//
// Informers and clients lose their types here, because a loop is the same for every kind.
package table

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/external"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// Kind is a kind of the program with its rows, and how to read and write their objects.
type Kind struct {
	*plan.Kind

	Owners Owners
	// Rows has the children in the order of plan.Kind.Children, and References what owners name, in the order
	// of plan.Kind.References.
	Rows       []*Children
	References []*Children

	buckets buckets
	// byController is the name of the index of the children by their controller.
	byController string
}

// Owners reads the objects of a kind of the program, and writes their status. The functions are those
// of a generated client.
type Owners struct {
	Informer     cache.TypedSharedIndexInformer[plan.Owner]
	Cache        cache.TypedIndexer[plan.Owner]
	Get          func(ctx context.Context, key cache.ObjectName, options metav1.GetOptions) (plan.Owner, error)
	UpdateStatus func(ctx context.Context, owner plan.Owner, options metav1.UpdateOptions) (plan.Owner, error)
	// SetFinalizer adds the kind's finalizer to an owner, or removes it: see external.SetFinalizer.
	SetFinalizer func(ctx context.Context, owner plan.Owner, hold bool, options metav1.PatchOptions) (plan.Owner, error)
}

// Children reads and writes the objects of a row. The functions are those of a generated client. References are
// only read, and without an informer, they have no cache.
type Children struct {
	*plan.ChildKind

	Informer cache.TypedSharedIndexInformer[plan.Object]
	Cache    cache.TypedIndexer[plan.Object]
	Get      func(ctx context.Context, key cache.ObjectName, options metav1.GetOptions) (plan.Object, error)
	Create   func(ctx context.Context, child plan.Object, options metav1.CreateOptions) (plan.Object, error)
	Patch    func(ctx context.Context, key cache.ObjectName, kind types.PatchType, patch []byte, options metav1.PatchOptions) (plan.Object, error)
	Delete   func(ctx context.Context, key cache.ObjectName, options metav1.DeleteOptions) error
	// List returns the objects of all namespaces that the options select.
	List func(ctx context.Context, options metav1.ListOptions) ([]plan.Object, error)

	// byName is the name of the index of the owners by the names of the children that they want.
	byName string
}

// Marked returns an object with the marks of an owner, read live from all namespaces, or nil if there is none.
func (k *Kind) Marked(ctx context.Context, owner plan.Owner) (plan.Object, error) {
	for _, row := range k.Rows {
		if !row.IsElsewhere() {
			continue
		}
		found, err := row.List(ctx, metav1.ListOptions{LabelSelector: k.OwnerLabel() + "=" + string(owner.GetUID())})
		if err != nil {
			return nil, err
		}
		for _, object := range found {
			if k.IsControlledBy(object, owner) {
				return object, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // a missing object is no error
}

// Row is a row of the table of a kind whose objects have the type F.
type Row[F plan.Object] func(kind *plan.Kind) *Children

// ownerClient and childClient are the methods of a generated client that a controller calls.
type ownerClient[F plan.Owner] interface {
	external.Client[F]
	UpdateStatus(ctx context.Context, owner F, options metav1.UpdateOptions) (F, error)
}

type getter[T plan.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
}

type childClient[T plan.Object, L runtime.Object] interface {
	getter[T]
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Create(ctx context.Context, child T, options metav1.CreateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// Of returns a kind of the program. in is its generated client, such as
// clientset.SamplecontrollerV1alpha1().Foos.
func Of[F plan.Owner, C ownerClient[F]](kind plan.Kind, informer cache.SharedIndexInformer, in func(namespace string) C, rows ...Row[F]) *Kind {
	owners := cache.NewTypedSharedIndexInformer[plan.Owner](informer)
	k := &Kind{Kind: &kind, buckets: newBuckets(), byController: indexByController + nameOf(&kind), Owners: Owners{
		Informer: owners, Cache: owners.GetTypedIndexer(),
		Get: func(ctx context.Context, key cache.ObjectName, options metav1.GetOptions) (plan.Owner, error) {
			return untyped[plan.Owner](in(key.Namespace).Get(ctx, key.Name, options))
		},
		UpdateStatus: func(ctx context.Context, owner plan.Owner, options metav1.UpdateOptions) (plan.Owner, error) {
			return untyped[plan.Owner](in(owner.GetNamespace()).UpdateStatus(ctx, owner.(F), options))
		},
		SetFinalizer: func(ctx context.Context, owner plan.Owner, hold bool, options metav1.PatchOptions) (plan.Owner, error) {
			return untyped[plan.Owner](external.SetFinalizer(ctx, in(owner.GetNamespace()), owner.(F), kind.Finalizer, hold, options))
		},
	}}
	return with(k, rows)
}

func with[F plan.Object](k *Kind, rows []Row[F]) *Kind {
	for _, row := range rows {
		children := row(k.Kind)
		if children.IsCall() {
			k.Calls = append(k.Calls, children.ChildKind)
			continue
		}
		if children.IsReference() {
			k.References, k.Kind.References = append(k.References, children), append(k.Kind.References, children.ChildKind)
			continue
		}
		k.Rows, k.Children = append(k.Rows, children), append(k.Children, children.ChildKind)
	}
	return k
}

// Owns is a row of children. in is their generated client, such as clientset.AppsV1().Deployments.
func Owns[F, T plan.Object, L runtime.Object, C childClient[T, L]](row plan.Row[F, T], informer cache.SharedIndexInformer, in func(namespace string) C) Row[F] {
	return func(kind *plan.Kind) *Children {
		children := cache.NewTypedSharedIndexInformer[plan.Object](informer)
		return &Children{
			ChildKind: row.Of(kind), Informer: children, Cache: children.GetTypedIndexer(),
			byName: indexByName + nameOf(kind) + "/" + row.Resource.GroupResource().String(),
			Get: func(ctx context.Context, key cache.ObjectName, options metav1.GetOptions) (plan.Object, error) {
				return untyped[plan.Object](in(key.Namespace).Get(ctx, key.Name, options))
			},
			Create: func(ctx context.Context, child plan.Object, options metav1.CreateOptions) (plan.Object, error) {
				return untyped[plan.Object](in(child.GetNamespace()).Create(ctx, child.(T), options))
			},
			Patch: func(ctx context.Context, key cache.ObjectName, kind types.PatchType, patch []byte, options metav1.PatchOptions) (plan.Object, error) {
				return untyped[plan.Object](in(key.Namespace).Patch(ctx, key.Name, kind, patch, options))
			},
			Delete: func(ctx context.Context, key cache.ObjectName, options metav1.DeleteOptions) error {
				return in(key.Namespace).Delete(ctx, key.Name, options)
			},
			List: func(ctx context.Context, options metav1.ListOptions) (items []plan.Object, err error) {
				list, err := in(metav1.NamespaceAll).List(ctx, options)
				if err == nil {
					err = meta.EachListItem(list, func(item runtime.Object) error {
						items = append(items, item.(plan.Object)) //nolint:forcetypeassert // the type constraints guarantee it
						return nil
					})
				}
				return items, err
			},
		}
	}
}

// ClusterScoped returns the generated client of a cluster-scoped kind, such as kubeClient.CoreV1().Namespaces, for Of,
// Owns and Uses.
func ClusterScoped[C any](in func() C) func(namespace string) C {
	return func(string) C { return in() }
}

// OfOthers returns a kind that isn't the program's own, such as Namespace or Ingress, which has no status for the
// program: what keeps an object from having what the rows declare is told in Events. keep copies the fields that the rows
// read, and no others: a change of any other field changes nothing. kind needs a Group. The informer must not be
// that of another kind or row.
func OfOthers[F plan.Object, C getter[F]](kind plan.Kind, keep func(kept, found F), informer cache.SharedIndexInformer, in func(namespace string) C, rows ...Row[F]) *Kind {
	kind.Keep = func(kept, found plan.Object) { keep(kept.(F), found.(F)) }
	owners := cache.NewTypedSharedIndexInformer[plan.Owner](informer)
	k := &Kind{Kind: &kind, buckets: newBuckets(), byController: indexByController + nameOf(&kind)}
	k.Owners = Owners{
		Informer: owners, Cache: owners.GetTypedIndexer(),
		Get: func(ctx context.Context, key cache.ObjectName, options metav1.GetOptions) (plan.Owner, error) {
			live, err := in(key.Namespace).Get(ctx, key.Name, options)
			if err != nil {
				return nil, err
			}
			return untyped[plan.Owner](kind.Transform(live))
		},
	}
	return with(k, rows)
}

// Sets is a row of fields of the owner itself, which isn't the program's own. in is its client, such as
// ClusterScoped(kubeClient.CoreV1().Namespaces).
func Sets[F plan.Object, L runtime.Object, C childClient[F, L]](row plan.Row[F, F], informer cache.SharedIndexInformer, in func(namespace string) C) Row[F] {
	owns := Owns(row, informer, in)
	return func(kind *plan.Kind) *Children {
		itself := owns(kind)
		itself.ChildKind, itself.Informer = row.OfItself(kind), nil // the owner's events are those of the row
		return itself
	}
}

// Uses is a row of objects that owners name and do not own, whose rights are those of their client, such as
// kubeClient.CoreV1().ConfigMaps. An informer of metadata is enough: only names and versions are kept of each
// object, and one whose version is new is read live.
//
// informer may be nil. Then the right to get is enough, and each object is read when the last read no longer
// counts. That is right for Secrets: whoever may list their metadata may list what is in them.
func Uses[F, T plan.Object, C getter[T]](ref plan.Ref[F, T], informer cache.SharedIndexInformer, in func(namespace string) C) Row[F] {
	return func(kind *plan.Kind) *Children {
		references := &Children{ChildKind: ref.Of(kind), Get: func(ctx context.Context, key cache.ObjectName, options metav1.GetOptions) (plan.Object, error) {
			return untyped[plan.Object](in(key.Namespace).Get(ctx, key.Name, options))
		}}
		if informer != nil {
			references.byName = indexByReference + nameOf(kind) + "/" + ref.Resource.GroupResource().String()
			references.Informer = cache.NewTypedSharedIndexInformer[plan.Object](informer)
			references.Cache = references.Informer.GetTypedIndexer()
		}
		return references
	}
}

// untyped returns a typed client's response without its type, or nil if there is an error.
func untyped[Untyped, T any](object T, err error) (result Untyped, _ error) {
	if err == nil {
		result = any(object).(Untyped) //nolint:forcetypeassert // the type constraints guarantee it
	}
	return result, err
}
