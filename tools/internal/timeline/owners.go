// SPDX-License-Identifier: Apache-2.0

// The owners of objects, and the cause of each write.

package timeline

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/audit"
)

// key identifies an object. Without a name, it stands for objects whose names are not in the log.
type key struct {
	schema.GroupResource

	namespace, name string
}

// makers maps a built-in resource to the resources whose objects own its objects. Objects of the
// timeline's kind may own objects of all other resources.
var makers = map[schema.GroupResource][]schema.GroupResource{
	{Resource: "pods"}: {
		{Group: "apps", Resource: "replicasets"},
		{Group: "apps", Resource: "statefulsets"},
		{Group: "apps", Resource: "daemonsets"},
		{Group: "batch", Resource: "jobs"},
	},
	{Group: "apps", Resource: "replicasets"}: {{Group: "apps", Resource: "deployments"}},
	{Group: "batch", Resource: "jobs"}:       {{Group: "batch", Resource: "cronjobs"}},
}

// owners holds the owner of each object that has a name.
type owners struct {
	// kind is the timeline's kind.
	kind *plan.Kind
	of   map[key]key
}

// ownersOf finds the owner of each object: by the owner reference if the log has it,
// otherwise by its name, which begins with the owner's.
func ownersOf(kind *plan.Kind, entries []*Entry) owners {
	nameThePods(entries)
	o := owners{kind, map[key]key{}}
	guess := resourceOf(kind.Resource.GroupVersion().WithKind(kind.Name))
	known, byHand := sets.New[key](), sets.New[key]()
	for _, e := range entries {
		e.object = keyOf(e.Write)
		known.Insert(e.object)
		if e.acts && e.Creates() && e.OK() {
			byHand.Insert(e.object) // names that people choose say nothing about owners
		}
		if e.owner.GroupResource == guess {
			e.owner.GroupResource = kind.Resource.GroupResource() // its plural may be irregular
		}
		if e.owner != (key{}) && e.Name != "" {
			o.of[e.object] = e.owner
		}
	}
	for object := range known {
		if owner := o.byName(object, known); o.of[object] == (key{}) && !byHand.Has(object) && owner != (key{}) {
			o.of[object] = owner
		}
	}
	return o
}

// owner returns the owner of an entry's object, which has no name if its create was refused.
func (o owners) owner(e *Entry) key {
	if e.Name == "" {
		return e.owner
	}
	return o.of[e.object]
}

// root returns the object of the timeline's kind to which an entry's object belongs, or else its last owner.
func (o owners) root(e *Entry) key {
	object, owner := e.object, o.owner(e)
	for range 10 { // a log may have a cycle
		if o.isRoot(object) || owner == (key{}) {
			break
		}
		object, owner = owner, o.of[owner]
	}
	return object
}

func (o owners) isRoot(object key) bool {
	return object.GroupResource == o.kind.Resource.GroupResource()
}

func keyOf(w audit.Write) key {
	return key{schema.GroupResource{Group: w.Group, Resource: w.Resource}, w.Namespace, w.Name}
}

// nameThePods finds the names of Pods in a log without bodies, where the API server generated
// them: the scheduler binds Pods in the order of their creation.
func nameThePods(entries []*Entry) {
	waiting := map[string][]*Entry{}
	for _, e := range entries {
		pods := waiting[e.Namespace]
		switch {
		case e.Resource != "pods" || !e.OK():
		case e.Creates() && e.Name == "":
			waiting[e.Namespace] = append(pods, e)
		case e.Subresource == "binding" && len(pods) > 0:
			pods[0].Name, waiting[e.Namespace] = e.Name, pods[1:]
		}
	}
}

// ownerIn returns the owner of an object from the owner references in the log.
func ownerIn(w audit.Write) key {
	for _, body := range []*audit.Object{w.Response, w.Request} {
		if body == nil {
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(&body.Metadata); owner != nil {
			return key{resourceOf(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)), w.Namespace, owner.Name}
		}
	}
	return key{}
}

func resourceOf(kind schema.GroupVersionKind) schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.GroupResource()
}

// byName returns the known object that can own a child, and whose name is the longest prefix of
// the child's name.
func (o owners) byName(child key, known sets.Set[key]) key {
	if o.isRoot(child) {
		return key{}
	}
	candidates := append(slices.Clone(makers[child.GroupResource]), o.kind.Resource.GroupResource())
	for name := child.name; name != ""; name = name[:max(0, strings.LastIndexAny(name, "-."))] {
		for _, resource := range candidates {
			if owner := (key{resource, child.namespace, name}); known.Has(owner) {
				return owner
			}
		}
	}
	return key{}
}

// patience is the longest time between a cause and its effect, except for the garbage collector,
// which has no limit.
const patience = time.Minute

// findCauses sets the cause of each entry.
func (o owners) findCauses(entries []*Entry) {
	deleted := map[key]*Entry{}
	for i, e := range entries {
		if !e.acts {
			e.Cause = o.causeOf(e, entries[:i])
			if of := deleted[o.owner(e)]; of != nil && e.Deletes() && (e.Cause == nil || of.Received.After(e.Cause.Received)) {
				e.Cause = of
			}
		}
		if e.OK() && e.Deletes() {
			deleted[e.object] = e
		}
	}
}

// causeOf returns another actor's last write to an entry's object, to its owner, or to an object
// that it owns.
func (o owners) causeOf(e *Entry, earlier []*Entry) *Entry {
	for _, before := range slices.Backward(earlier) {
		if e.Received.Sub(before.Received) > patience {
			break
		}
		if before.OK() && before.actor != e.actor && o.leadTo(before, e) {
			return before
		}
	}
	return nil
}

// leadTo reports whether a write may have caused a later one.
func (o owners) leadTo(before, e *Entry) bool {
	owner := o.owner(e)
	switch {
	case before.object == e.object && e.Name != "":
		return true
	case reactsToItsObjectOnly(e.actor):
		return false
	case o.of[before.object] == e.object:
		return true
	case before.object == owner:
		return before.Subresource != "status"
	}
	// The object may replace a deleted one.
	sibling := o.of[before.object] == owner && before.object.GroupResource == e.object.GroupResource
	return sibling && before.Deletes() && e.Creates()
}

// reactsToItsObjectOnly reports whether an actor reacts only to changes of the object that it writes.
func reactsToItsObjectOnly(actor audit.Actor) bool {
	switch actor.Name {
	case "kube-scheduler", audit.Kubelet, audit.KwokKubelet:
		return true
	}
	return false
}
