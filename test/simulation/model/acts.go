// SPDX-License-Identifier: Apache-2.0

// What users do, and others who write.

package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/test/footest"
)

// finalizer is that of somebody else, who may keep an object from being deleted.
const finalizer = "example.com/held"

// Act is a write of a user, or of somebody else.
type Act struct {
	// Text says what is done, as in Parse.
	Text string
	Kind *footest.Kind
	Name string
	// Verb is that of the request.
	Verb string

	sent func(stored footest.Object) runtime.Object
}

// Request returns the request of an act. It is not ok if the act makes no sense now: nobody
// creates what is there, or changes or deletes what is not.
func (a Act) Request(stored footest.Object) (r Request, ok bool) {
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
//	delete a            delete the owner a; "delete a foreground" and "delete a orphan" do so in these ways
//	drift web           change the fields of a child that its owner owns
//	edit web 1          change others; the number is a part of the change
//	tune web            change those that an owner may leave to others
//	strip web           take away its owner
//	take web            create a child by hand
//	remove web          delete a child
//	hand web a          consent to its adoption by the owner a
//	keep web, release web    add a finalizer, which keeps it from being deleted, and remove that
//
// A child is of the first kind in which there is one of the name, or of the kind before a slash,
// as in Deployment/web.
func Parse(owner *footest.OwnerRow, text string, exists func(kind *footest.Kind, name string) bool) (a Act, ok bool) {
	words := append(strings.Fields(text), "", "", "", "")
	verb, name := words[0], words[1]
	if a, ok = ofOwner(owner, verb, name, words[2], words[3]); !ok {
		prefix, base, hasPrefix := strings.Cut(name, "/")
		kinds := append(slices.Clone(owner.Kinds), owner.Kind)
		i := slices.IndexFunc(kinds, func(kind *footest.Kind) bool {
			return hasPrefix && kind.Kind == prefix || !hasPrefix && exists(kind, name)
		})
		if i < 0 {
			return Act{}, false
		}
		if hasPrefix {
			name = base
		}
		a, ok = ofChild(kinds[i], verb, name, words[2])
	}
	a.Text = text
	return a, ok && exists(a.Kind, a.Name)
}

// deletions are the ways to delete an owner.
var deletions = map[string]metav1.DeletionPropagation{
	"": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
}

func ofOwner(owner *footest.OwnerRow, verb, name, more, size string) (Act, bool) {
	switch verb {
	case "create":
		return create(owner.Kind, name, owner.Asking(name, more, number(size, 1))), true
	case "rename":
		return change(owner.Kind, name, func(foo footest.Object) { owner.Rename(foo, more) }), true
	case "scale":
		return change(owner.Kind, name, func(foo footest.Object) {
			owner.Resize(foo, number(more, 1+int32(foo.GetGeneration()%2)))
		}), true
	case "suspend", "resume":
		return change(owner.Kind, name, func(foo footest.Object) { footest.Suspend(foo, verb == "suspend") }), true
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

func ofChild(kind *footest.Kind, verb, name, more string) (Act, bool) {
	switch verb {
	case "drift":
		return change(kind, name, func(child footest.Object) { kind.Drift(child, nil) }), true
	case "edit":
		return change(kind, name, func(child footest.Object) { kind.Edit(child, fmt.Sprint(number(more, 1))) }), true
	case "tune":
		return change(kind, name, kind.EditOptional), kind.EditOptional != nil
	case "strip":
		return change(kind, name, func(child footest.Object) { child.SetOwnerReferences(nil) }), true
	case "take":
		return create(kind, name, kind.ForeignNamed(name)), true
	case "remove":
		return remove(kind, name, metav1.DeleteOptions{}), true
	case "hand":
		return change(kind, name, func(child footest.Object) {
			annotations := map[string]string{}
			maps.Copy(annotations, child.GetAnnotations())
			annotations["samplecontroller.k8s.io/adopt-by"] = more
			child.SetAnnotations(annotations)
		}), true
	case "keep", "release":
		return change(kind, name, func(object footest.Object) {
			others := slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return name == finalizer })
			if verb == "keep" {
				others = append(others, finalizer)
			}
			object.SetFinalizers(others)
		}), true
	}
	return Act{}, false
}

func create(kind *footest.Kind, name string, object footest.Object) Act {
	return Act{Kind: kind, Name: name, Verb: "create", sent: func(footest.Object) runtime.Object {
		return object.DeepCopyObject()
	}}
}

func change(kind *footest.Kind, name string, change func(footest.Object)) Act {
	return Act{Kind: kind, Name: name, Verb: "update", sent: func(stored footest.Object) runtime.Object {
		changed := copyOf(stored)
		change(changed)
		return changed
	}}
}

func remove(kind *footest.Kind, name string, options metav1.DeleteOptions) Act {
	return Act{Kind: kind, Name: name, Verb: "delete", sent: func(footest.Object) runtime.Object { return &options }}
}
