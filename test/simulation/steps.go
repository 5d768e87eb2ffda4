// SPDX-License-Identifier: Apache-2.0

// The steps of users, and the workloads made of them.

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/test/footest"
)

// step is one change that a user makes.
type step struct {
	name string
	do   func(*cluster)
}

// String returns the name, which rapid prints for a step that it drew.
func (s step) String() string { return s.name }

// userTimeout is how long a user retries, for example while a child does not exist yet.
const userTimeout = 30 * time.Second

// create creates an owner that asks for a child of each kind. With size 0 it leaves to
// others what it may leave to them.
func create(name, childName string, size int32) step {
	return step{fmt.Sprintf("create owner %s: children %s, size %d", name, childName, size), func(c *cluster) {
		c.create(c.owner.Asking(name, childName, size))
	}}
}

func scale(name string, size int32) step {
	return step{fmt.Sprintf("scale owner %s to %d", name, size), func(c *cluster) {
		c.update(c.ownerID(name), func(object footest.Object) { c.owner.Resize(object, size) })
	}}
}

func rename(name, childName string) step {
	return step{fmt.Sprintf("make owner %s ask for children %s", name, childName), func(c *cluster) {
		c.update(c.ownerID(name), func(object footest.Object) { c.owner.Rename(object, childName) })
	}}
}

func deleteFoo(name string) step {
	return step{"delete owner " + name, func(c *cluster) { c.delete(c.ownerID(name), metav1.DeletePropagationBackground) }}
}

func deleteFooInForeground(name string) step {
	return step{"delete owner " + name + " in the foreground", func(c *cluster) {
		c.delete(c.ownerID(name), metav1.DeletePropagationForeground)
	}}
}

// child names a child of a kind.
type child struct {
	*footest.Kind

	name string
}

func (c child) String() string { return c.Kind.Kind + " " + c.name }

func (c child) id() objectID { return idIn(c.Kind, c.name) }

func createForeign(k child) step {
	return step{"create " + k.String() + " by hand", func(c *cluster) { c.create(k.ForeignNamed(k.name)) }}
}

func deleteChild(k child) step {
	return step{"delete " + k.String(), func(c *cluster) { c.delete(k.id(), metav1.DeletePropagationBackground) }}
}

// drift changes each owned field of a child.
func drift(k child) step {
	return step{"change owned fields of " + k.String(), func(c *cluster) {
		c.update(k.id(), func(object footest.Object) { k.Drift(object, nil) })
	}}
}

// edit changes fields of a child that no Foo owns.
func edit(k child, note string) step {
	return step{"change unowned fields of " + k.String(), func(c *cluster) {
		c.update(k.id(), func(object footest.Object) { k.Edit(object, note) })
	}}
}

// editOptional changes fields of a child that a Foo may leave to others.
func editOptional(k child) step {
	return step{"change optional fields of " + k.String(), func(c *cluster) { c.update(k.id(), k.EditOptional) }}
}

// handOver adds the annotation that consents to the adoption of a child by a Foo.
func handOver(k child, fooName string) step {
	return step{"hand " + k.String() + " over to owner " + fooName, func(c *cluster) {
		c.update(k.id(), func(object footest.Object) {
			annotations := map[string]string{}
			maps.Copy(annotations, object.GetAnnotations())
			annotations["samplecontroller.k8s.io/adopt-by"] = fooName
			object.SetAnnotations(annotations)
		})
	}}
}

// hold adds a finalizer to an object, so that it stays after its deletion until release
// removes the finalizer.
func hold(id objectID) step {
	return step{"add a finalizer to " + id.String(), func(c *cluster) {
		c.update(id, func(object footest.Object) { object.SetFinalizers(append(object.GetFinalizers(), finalizer)) })
	}}
}

func release(id objectID) step {
	return step{"remove the finalizer of " + id.String(), func(c *cluster) {
		c.update(id, func(object footest.Object) {
			object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return name == finalizer }))
		})
	}}
}

const finalizer = "example.com/held"

// atOnce makes several changes in quick succession, with just enough time between them
// for a controller to see each.
func atOnce(steps ...step) step {
	all := step{name: "at once"}
	for _, s := range steps {
		all.name += ", " + s.name
	}
	all.do = func(c *cluster) {
		for _, s := range steps {
			s.do(c)
			advance(time.Millisecond)
		}
	}
	return all
}

// create creates an object. It waits while the name is taken, for example by an object in
// deletion.
func (c *cluster) create(object runtime.Object) {
	c.try(idOf(object), func() error {
		_, err := c.api.create(object, noInspection)
		return err
	})
}

// update changes an object. It waits for an object that does not exist yet.
func (c *cluster) update(id objectID, change func(footest.Object)) {
	c.try(id, func() error {
		object, err := c.api.get(id)
		if err != nil {
			return err
		}
		change(metaOf(object))
		_, err = c.api.update(object, "", noInspection)
		return err
	})
}

func (c *cluster) delete(id objectID, propagation metav1.DeletionPropagation) {
	c.try(id, func() error {
		return c.api.delete(id, metav1.DeleteOptions{PropagationPolicy: &propagation}, noInspection)
	})
}

// try repeats a user's write until it succeeds, at most for userTimeout.
func (c *cluster) try(id objectID, write func() error) {
	for began := time.Now(); ; advance(time.Second) {
		err := write()
		if err == nil {
			return
		}
		if time.Since(began) >= userTimeout {
			c.tracef("user: gave up on %s: %v", id, err)
			return
		}
	}
}

// workload holds the steps of users in one run.
type workload struct {
	name string
	// before holds the steps before the controller starts.
	before []step
	steps  []step
}

// workloads returns the workloads about owners of a kind, and those about each kind of
// their children.
func workloads(owner *footest.OwnerRow) []workload {
	a := idIn(owner.Kind, "a")
	all := []workload{
		{name: "create", steps: []step{
			create("a", "web", 1),
		}},
		{name: "scale", steps: []step{
			create("a", "web", 2), scale("a", 3), scale("a", 1),
		}},
		{name: "rename", steps: []step{
			create("a", "web", 2), rename("a", "api"), rename("a", "web"),
		}},
		{name: "rename and scale", before: []step{create("a", "web", 1)}, steps: []step{
			atOnce(rename("a", "api"), scale("a", 2)), atOnce(rename("a", "db"), rename("a", "api")),
		}},
		{name: "recreate", steps: []step{
			create("a", "web", 1), deleteFoo("a"), create("a", "web", 1), atOnce(deleteFoo("a"), create("a", "web", 2)),
		}},
		{name: "foreground", steps: []step{
			create("a", "web", 1), deleteFooInForeground("a"), create("a", "web", 1),
		}},
		{name: "two owners", steps: []step{
			create("a", "web", 1), create("b", "web", 2), deleteFoo("a"),
		}},
		{name: "finalizer", steps: []step{
			create("a", "web", 1), hold(a), deleteFoo("a"), release(a),
		}},
	}
	for _, kind := range owner.Kinds {
		all = append(all, workloadsOf(owner, kind)...)
	}
	return all
}

// workloadsOf returns the workloads about one kind of children.
func workloadsOf(owner *footest.OwnerRow, kind *footest.Kind) []workload {
	web, api := kind.Name(owner.Asking("a", "web", 1)), child{kind, kind.Name(owner.Asking("a", "api", 1))}
	child := child{kind, web}
	of := " " + kind.Resource.Resource
	all := []workload{
		{name: "drift" + of, steps: []step{
			create("a", "web", 1), drift(child), atOnce(edit(child, "1"), scale("a", 2)), atOnce(edit(child, "2"), drift(child)), deleteChild(child),
		}},
		{name: "foreign" + of, before: []step{createForeign(child)}, steps: []step{
			create("a", "web", 1), deleteChild(child),
		}},
		{name: "adopt" + of, before: []step{createForeign(child)}, steps: []step{
			create("a", "web", 2), handOver(child, "a"), edit(child, "1"),
		}},
		{name: "held" + of, steps: []step{
			create("a", "web", 1), hold(child.id()), deleteChild(child), release(child.id()),
		}},
	}
	if api.name != web {
		all = append(all, workload{name: "taken" + of, before: []step{createForeign(api), create("a", "web", 1)}, steps: []step{
			rename("a", "api"), deleteChild(api),
		}})
	}
	if kind.EditOptional != nil {
		all = append(all, workload{name: "optional" + of, steps: []step{
			// What the new child begins with depends on whether the cache shows the earlier one.
			create("a", "web", 0), editOptional(child), rename("a", "api"), editOptional(api),
		}})
	}
	return all
}
