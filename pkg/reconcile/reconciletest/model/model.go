// SPDX-License-Identifier: Apache-2.0

// Package model has what the simulation and the exploration have in common: requests, what
// users ask for, and what the control plane does.
package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
)

// Request is a request about one object.
type Request struct {
	// Verb is get, create, update or delete. Subresource may be status, for an update.
	Verb, Subresource string
	Kind              *rows.Kind
	Name              string
	// Sent is the object to create or update, or the options of a delete.
	Sent runtime.Object
}

// Action returns the verb, with the subresource, as in update-status.
func (r Request) Action() string {
	if r.Subresource != "" {
		return r.Verb + "-" + r.Subresource
	}
	return r.Verb
}

// String describes the request.
func (r Request) String() string { return fmt.Sprintf("%s %s %s", r.Action(), r.Kind, r.Name) }

// Write returns what a request that is not a get does to the object, which is nil if there is
// none. Who stores the change sets its resourceVersion, and the UID of a new object.
func (r Request) Write(stored rows.Object, now metav1.Time) (rows.Change, error) {
	switch r.Verb {
	case "create":
		change, err := r.Kind.Create(stored, r.Object())
		if err == nil {
			change.Object.SetNamespace(r.Kind.Namespace())
		}
		return change, err
	case "update":
		return r.Kind.Update(stored, r.Object(), r.Subresource)
	case "delete":
		return r.Kind.Delete(stored, r.Name, r.DeleteOptions(), now)
	default:
		panic("no API server in memory has the verb " + r.Verb)
	}
}

// Object returns the object that a create or an update sends.
func (r Request) Object() rows.Object {
	return r.Sent.(rows.Object) //nolint:forcetypeassert // each object of the tests has metadata
}

// DeleteOptions returns the options of a delete.
func (r Request) DeleteOptions() metav1.DeleteOptions {
	if options, ok := r.Sent.(*metav1.DeleteOptions); ok {
		return *options
	}
	return metav1.DeleteOptions{}
}

// Denial returns the answer of an API server whose webhook denies a request with its own code: it
// has no reason.
func Denial(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code,
		Message: fmt.Sprintf(`admission webhook "names.example.com" denied the request: %d`, code),
	}}
}

// Duty is a kind of write that the control plane has to make.
type Duty uint8

const (
	// Collect is the deletion of a child whose owner is gone or in foreground deletion.
	Collect Duty = iota
	// Orphan removes the owner from a child.
	Orphan
	// Finish removes the finalizer of an owner without children.
	Finish
	// Advance is a write of a child's status by its own controller.
	Advance
)

// String says what is done.
func (d Duty) String() string {
	return [...]string{Collect: "deletes", Orphan: "orphans", Finish: "lets go of", Advance: "reports the status of"}[d]
}

// Duties calls yield with each object of a world about which the control plane has something to
// do. It reads the objects and does not change them.
func Duties(w rules.World, yield func(Duty, rows.Object)) {
	for _, object := range w.Objects {
		if w.Owner.Is(object) {
			isChild := func(child rows.Object) bool { return metav1.IsControlledBy(child, object) }
			if isCollected(object) && !slices.ContainsFunc(w.Objects, isChild) {
				yield(Finish, object)
			}
			continue
		}
		// The garbage collector follows references alone.
		owner, isOwned := w.OwnerOf(object), metav1.GetControllerOf(object) != nil && w.Owner.OwnerOf(object) != ""
		switch isGoing := object.GetDeletionTimestamp() != nil; {
		case isOwned && !isGoing && (owner == nil || isHeld(owner, metav1.FinalizerDeleteDependents)):
			yield(Collect, object)
		case isOwned && owner != nil && isHeld(owner, metav1.FinalizerOrphanDependents):
			yield(Orphan, object)
		}
		if w.Owner.KindOf(object).Advance(rows.CopyOf(object)) {
			yield(Advance, object)
		}
	}
}

// isCollected reports whether an owner stays in deletion until the garbage collector has seen to
// its children.
func isCollected(owner rows.Object) bool {
	return isHeld(owner, metav1.FinalizerDeleteDependents) || isHeld(owner, metav1.FinalizerOrphanDependents)
}

func isHeld(object rows.Object, finalizer string) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), finalizer)
}

// Request returns the write that carries out a duty.
func (d Duty) Request(kind *rows.Kind, object rows.Object) Request {
	r := Request{Verb: "update", Kind: kind, Name: object.GetName()}
	changed := rows.CopyOf(object)
	switch d {
	case Collect:
		r.Verb = "delete"
		r.Sent = &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(object.GetUID()))}
		return r
	case Orphan:
		changed.SetOwnerReferences(nil)
	case Finish:
		changed.SetFinalizers(slices.DeleteFunc(changed.GetFinalizers(), func(name string) bool {
			return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
		}))
	case Advance:
		r.Kind.Advance(changed)
		r.Subresource = "status"
	}
	r.Sent = changed
	return r
}

// finalizer is that of someone else, who may keep an object from being deleted.
const finalizer = "example.com/held"

// Act is a write of a user, or of someone else.
type Act struct {
	// Text says what is done, as in Parse.
	Text string
	Kind *rows.Kind
	Name string
	// Verb is that of the request.
	Verb string

	sent func(stored rows.Object) runtime.Object
}

// Request returns the request of an act. It is not ok if the act makes no sense now: no one
// creates what is there, or changes or deletes what is not.
func (a Act) Request(stored rows.Object) (r Request, ok bool) {
	if (stored == nil) != (a.Verb == "create") {
		return Request{}, false
	}
	return Request{Verb: a.Verb, Kind: a.Kind, Name: a.Name, Sent: a.sent(stored)}, true
}

// Parse returns the act of a text: a verb, a name, and what the verb needs, as in
//
//	create a web 2      create the owner a, which asks for children named web, of size 2 (1 by default); with
//	                    size 0 it leaves to others what it may leave to them
//	rename a api        make the owner a ask for children of another name
//	scale a 3           change what else it asks for; by default it alternates between two sizes
//	suspend a, resume a
//	sync a 2            ask for a sync of it now; the number tells requests apart
//	unset a Service     make it cease to ask for the optional child of a kind; "ask a Service" is the opposite
//	delete a            delete the owner a; "delete a foreground" and "delete a orphan" do so in these ways
//	drift web           change the fields of a child that its owner owns
//	edit web 1          change others; the number is a part of the change
//	tune web            change those that an owner may leave to others
//	strip web           take away its owner
//	take web            create a child by hand
//	remove web          delete a child
//	hand web a          consent to its adoption by the owner a
//	keep web, release web    add a finalizer, which keeps it from being deleted, and remove that
//	offer Secret/web    create an object that owners name and do not own; "remove" and "edit" are for those, too
//	amend Secret/web 2  make one of the changes by which children change; with 0 it is as at first
//	spoil Secret/web    make it unfit
//
// A child is of the first kind in which there is one of the name, or of the kind before a slash,
// as in Deployment/web.
func Parse(owner *rows.OwnerRow, text string, exists func(kind *rows.Kind, name string) bool) (a Act, ok bool) {
	words := append(strings.Fields(text), "", "", "", "")
	verb, name := words[0], words[1]
	if a, ok = ofOwner(owner, verb, name, words[2], words[3]); !ok {
		prefix, base, hasPrefix := strings.Cut(name, "/")
		kinds := slices.Concat(owner.Kinds, owner.All()) // children come first
		i := slices.IndexFunc(kinds, func(kind *rows.Kind) bool {
			return hasPrefix && kind.Kind == prefix || !hasPrefix && exists(kind, name)
		})
		if i < 0 {
			return Act{}, false
		}
		if hasPrefix {
			name = base
		}
		if a, ok = ofReference(owner, kinds[i], verb, name, words[2]); !ok {
			a, ok = ofChild(kinds[i], verb, name, words[2])
		}
	}
	a.Text = text
	return a, ok && exists(a.Kind, a.Name)
}

// MustParse returns the act of a text that names the kind of a child.
func MustParse(owner *rows.OwnerRow, text string) Act {
	a, ok := Parse(owner, text, func(*rows.Kind, string) bool { return true })
	if !ok {
		panic(fmt.Sprintf("no user can %q", text))
	}
	return a
}

// deletions are the ways to delete an owner.
var deletions = map[string]metav1.DeletionPropagation{
	"": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
}

func ofOwner(owner *rows.OwnerRow, verb, name, more, size string) (Act, bool) {
	switch verb {
	case "create":
		return create(owner.Kind, name, owner.Asking(name, more, number(size, 1))), true
	case "rename":
		return change(owner.Kind, name, func(foo rows.Object) { owner.Rename(foo, more) }), true
	case "scale":
		return change(owner.Kind, name, func(foo rows.Object) {
			owner.Resize(foo, number(more, 1+int32(foo.GetGeneration()%2)))
		}), true
	case "unset", "ask":
		i := slices.IndexFunc(owner.Kinds, func(kind *rows.Kind) bool { return kind.Kind == more && kind.IsOptional() })
		if i < 0 {
			return Act{}, false
		}
		edit := map[string]func(rows.Object){"unset": owner.Kinds[i].Unset, "ask": owner.Kinds[i].Ask}[verb]
		return change(owner.Kind, name, edit), true
	case "suspend", "resume":
		return change(owner.Kind, name, func(foo rows.Object) { rows.Suspend(foo, verb == "suspend") }), true
	case "sync":
		return change(owner.Kind, name, func(foo rows.Object) { annotate(foo, owner.SyncRequested(), fmt.Sprint(number(more, 1))) }), true
	case "delete":
		policy, known := deletions[more]
		return remove(owner.Kind, name, metav1.DeleteOptions{PropagationPolicy: &policy}), known
	}
	return Act{}, false
}

// number returns the number in a word, or another if there is none.
func number(word string, otherwise int32) int32 {
	if n, err := strconv.ParseInt(word, 10, 32); err == nil {
		return int32(n)
	}
	return otherwise
}

func ofReference(owner *rows.OwnerRow, kind *rows.Kind, verb, name, more string) (Act, bool) {
	i := slices.IndexFunc(owner.References, func(reference *rows.Reference) bool { return reference.Kind == kind })
	if i < 0 {
		return Act{}, false
	}
	switch reference := owner.References[i]; verb {
	case "offer":
		return create(kind, name, reference.New(name, number(more, 0))), true
	case "amend":
		return change(kind, name, func(object rows.Object) { reference.Amend(object, number(more, 1)) }), true
	case "spoil":
		return change(kind, name, reference.Spoil), reference.Spoil != nil
	}
	return Act{}, false
}

func ofChild(kind *rows.Kind, verb, name, more string) (Act, bool) {
	switch verb {
	case "drift":
		return change(kind, name, func(child rows.Object) { kind.Drift(child, nil) }), true
	case "edit":
		return change(kind, name, func(child rows.Object) { kind.Edit(child, fmt.Sprint(number(more, 1))) }), true
	case "tune":
		return change(kind, name, kind.EditOptional), kind.EditOptional != nil
	case "strip":
		return change(kind, name, func(child rows.Object) { child.SetOwnerReferences(nil) }), true
	case "take":
		return create(kind, name, kind.ForeignNamed(name)), true
	case "remove":
		return remove(kind, name, metav1.DeleteOptions{}), true
	case "hand":
		return change(kind, name, func(child rows.Object) { annotate(child, kind.Owner().AdoptBy(), more) }), true
	case "keep", "release":
		return change(kind, name, func(object rows.Object) {
			others := slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return name == finalizer })
			if verb == "keep" {
				others = append(others, finalizer)
			}
			object.SetFinalizers(others)
		}), true
	}
	return Act{}, false
}

// annotate sets an annotation of a copy, which shares the map with the original.
func annotate(object rows.Object, name, value string) {
	annotations := map[string]string{}
	maps.Copy(annotations, object.GetAnnotations())
	annotations[name] = value
	object.SetAnnotations(annotations)
}

func create(kind *rows.Kind, name string, object rows.Object) Act {
	return Act{Kind: kind, Name: name, Verb: "create", sent: func(rows.Object) runtime.Object {
		return object.DeepCopyObject()
	}}
}

func change(kind *rows.Kind, name string, change func(rows.Object)) Act {
	return Act{Kind: kind, Name: name, Verb: "update", sent: func(stored rows.Object) runtime.Object {
		changed := rows.CopyOf(stored)
		change(changed)
		return changed
	}}
}

func remove(kind *rows.Kind, name string, options metav1.DeleteOptions) Act {
	return Act{Kind: kind, Name: name, Verb: "delete", sent: func(rows.Object) runtime.Object { return &options }}
}
