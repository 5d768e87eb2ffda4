// SPDX-License-Identifier: Apache-2.0

// Package rules says what is wrong with a controller: with a write, with the world at rest, and with
// the condition Ready of an owner, by a record of all states of the owners and of their children.
//
// The last rule: if an owner reports Ready=True with observedGeneration G, then for each kind of
// children there was a moment since G began at which it controlled a child with the name
// and the owned fields that G asks for, and the child was ready (if it is a workload: rolled
// out and available). What that means for a kind, its row says.
package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// History holds the states that watches of owners and their children delivered. All must
// have the same store, so that their resourceVersions can be compared. It is safe for
// concurrent use.
type History struct {
	Owner *rows.OwnerRow

	// kinds are those that a ready owner must have, or nil for all.
	kinds []*rows.Kind

	mu      sync.Mutex
	objects map[objectKey][]state
}

// objectKey names an object of a kind.
type objectKey struct {
	kind *rows.Kind
	name cache.ObjectName
}

// state is the state of an object from one version until the next.
type state struct {
	// until is set by between alone.
	from, until uint64
	object      rows.Object
	deleted     bool
}

// Add records a state of an owner or of a child, or its deletion. Call it in the order of the
// watch.
func (h *History) Add(object rows.Object, deleted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.objects == nil {
		h.objects = map[objectKey][]state{}
	}
	key := objectKey{h.Owner.KindOf(object), cache.MetaObjectToName(object)}
	h.objects[key] = append(h.objects[key], state{from: versionOf(object), object: object, deleted: deleted})
}

// newest returns the newest state of each object of a kind.
func (h *History) newest(kind *rows.Kind) map[cache.ObjectName]state {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest := map[cache.ObjectName]state{}
	for key, states := range h.objects {
		if key.kind == kind {
			newest[key.name] = states[len(states)-1]
		}
	}
	return newest
}

// Has reports whether the record is as new as a list of a kind: it has every object of the list, in
// the same version or a newer one, and the deletion of each object that is not in the list.
func (h *History) Has(kind *rows.Kind, list runtime.Object) (bool, error) {
	at, err := VersionOf(list)
	if err != nil {
		return false, err
	}
	all, newest := true, h.newest(kind)
	err = meta.EachListItem(list, func(object runtime.Object) error {
		accessor, err := meta.Accessor(object)
		if err == nil {
			name := cache.MetaObjectToName(accessor)
			all = all && newest[name].from >= versionOf(accessor)
			delete(newest, name)
		}
		return err
	})
	for _, missing := range newest {
		all = all && (missing.deleted || missing.from > at)
	}
	return all, err
}

// VersionOf returns the resourceVersion of a list as a number.
func VersionOf(list runtime.Object) (uint64, error) {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return 0, err
	}
	return parseVersion(accessor.GetResourceVersion()), nil
}

// versionOf returns an object's resourceVersion as a number. The tests' API servers use
// only numbers.
func versionOf(object metav1.Object) uint64 { return parseVersion(object.GetResourceVersion()) }

func parseVersion(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("a resourceVersion is not a number: %v", err))
	}
	return version
}

// Lies returns a sentence for each state in which an owner falsely reported Ready=True. It
// ignores states from before the record began. If the environment variable RECORDED_STATUSES
// names a directory, it writes each distinct state of an owner there, with what tools may judge by:
// the generation, the spec and the status, without times.
func (h *History) Lies() ([]string, error) { return h.LiesUntil(math.MaxUint64) }

// LiesUntil is like Lies for the states up to a version.
func (h *History) LiesUntil(upTo uint64) (lies []string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	folder := os.Getenv("RECORDED_STATUSES")
	claimed := uint64(0) // when the last generation began that an owner has reported as ready
	for s, began := range h.ofOwners(upTo) {
		if folder != "" {
			err = errors.Join(err, h.keep(folder, s.object, len(h.unmet(s.object, began, s.from)) == 0))
		}
		if claimed != began && ClaimsReady(s.object) {
			lies = append(lies, h.liesAt(s.object, began, s.from)...)
			claimed = began
		}
	}
	return lies, err
}

// ofOwners yields the states of all owners up to a version, and at which version the generation of each
// began. It leaves out a generation that was reported as ready before the record began.
func (h *History) ofOwners(upTo uint64) iter.Seq2[state, uint64] {
	return func(yield func(state, uint64) bool) {
		for _, states := range h.objects {
			if !h.Owner.Is(states[0].object) {
				continue
			}
			isOld, first := ClaimsReady(states[0].object), states[0]
			for _, s := range states {
				if s.object.GetUID() != first.object.GetUID() || s.object.GetGeneration() != first.object.GetGeneration() {
					isOld, first = false, s
				}
				if s.from <= upTo && !s.deleted && !isOld && !yield(s, first.from) {
					return
				}
			}
		}
	}
}

// liesAt returns a sentence for each child that an owner did not have, ready, at any moment
// since its generation began.
func (h *History) liesAt(foo rows.Object, began, version uint64) []string {
	var lies []string
	for _, child := range h.unmet(foo, began, version) {
		lies = append(lies, fmt.Sprintf("%s %s reports Ready for generation %d at version %d, but since that generation began at version %d there was no %s %s as it asks: %s",
			h.Owner, cache.MetaObjectToName(foo), foo.GetGeneration(), version, began, child.kind, child.name.Name, h.describe(child, foo, began, version)))
	}
	return lies
}

// unmet returns the children that an owner asks for and did not have, ready, at any moment between
// two versions.
func (h *History) unmet(foo rows.Object, from, until uint64) []objectKey {
	var unmet []objectKey
	kinds := h.kinds
	if kinds == nil {
		kinds = h.Owner.Kinds
	}
	for _, kind := range kinds {
		for _, name := range kind.Names(foo) {
			child := objectKey{kind, cache.ObjectName{Namespace: foo.GetNamespace(), Name: name}}
			isReady := func(s state) bool { return h.obstacle(kind, s, foo) == "" }
			if !slices.ContainsFunc(h.between(child, from, until), isReady) {
				unmet = append(unmet, child)
			}
		}
	}
	return unmet
}

// ClaimsReady reports whether an owner's status says that its current generation is ready.
func ClaimsReady(foo rows.Object) bool {
	ready := rows.ConditionOf(foo)
	return ready != nil && ready.Status == metav1.ConditionTrue &&
		(ready.ObservedGeneration >= foo.GetGeneration() || rows.ObservedGenerationOf(foo) >= foo.GetGeneration())
}

// between returns the states of a child between two versions, including the state at the first.
func (h *History) between(child objectKey, from, until uint64) []state {
	all := h.objects[child]
	var between []state
	for i, s := range all {
		end := uint64(math.MaxUint64)
		if i+1 < len(all) {
			end = all[i+1].from
		}
		if !s.deleted && s.from <= until && end > from {
			s.until = min(end-1, until)
			between = append(between, s)
		}
	}
	return between
}

// Obstacle says why an owner is not ready by a child, or "".
func Obstacle(kind *rows.Kind, child rows.Object, foo rows.Object) string {
	owner := metav1.GetControllerOf(child)
	switch {
	case owner == nil:
		return "has no controller"
	case owner.UID != foo.GetUID():
		return "is controlled by " + string(owner.UID)
	}
	if differs := kind.Differs(child, foo); differs != "" {
		return differs
	}
	return kind.Unready(child)
}

// obstacle is like Obstacle, in the world of the time when a child's state began. If it is as its owner
// asks in that world, or in that of the time when the state ended, there was none. An owner may have seen any earlier
// state of an object that it names: its generation does not tell.
func (h *History) obstacle(kind *rows.Kind, s state, foo rows.Object) (obstacle string) {
	if kind.DiffersIn == nil {
		return Obstacle(kind, s.object, foo)
	}
	if owner := metav1.GetControllerOf(s.object); owner == nil || owner.UID != foo.GetUID() {
		return "does not belong to it"
	}
	if unready := kind.Unready(s.object); unready != "" {
		return unready
	}
	for _, at := range []uint64{s.from, s.until} {
		for _, seen := range append(h.changesOfNamed(foo, s.until), at) {
			differs := kind.DiffersIn(s.object, foo, func(kind *rows.Kind, name string) rows.Object {
				when := at
				if h.Owner.IsNamedBy(foo, kind, name) {
					when = seen
				}
				return h.at(objectKey{kind, cache.ObjectName{Namespace: foo.GetNamespace(), Name: name}}, when)
			})
			if differs == "" {
				return ""
			}
			obstacle = cmp.Or(obstacle, differs)
		}
	}
	return obstacle
}

// changesOfNamed returns the versions up to one at which objects that an owner names changed.
func (h *History) changesOfNamed(foo rows.Object, until uint64) (versions []uint64) {
	for _, reference := range h.Owner.References {
		for _, name := range reference.Names(foo) {
			for _, s := range h.objects[objectKey{reference.Kind, cache.ObjectName{Namespace: foo.GetNamespace(), Name: name}}] {
				if s.from <= until {
					versions = append(versions, s.from)
				}
			}
		}
	}
	return versions
}

// at returns the state of an object at a version, or nil.
func (h *History) at(key objectKey, version uint64) rows.Object {
	for _, s := range slices.Backward(h.objects[key]) {
		if s.from <= version && !s.deleted {
			return s.object
		}
		if s.from <= version {
			break
		}
	}
	return nil
}

// describe describes the states of a child that an owner asks for.
func (h *History) describe(child objectKey, foo rows.Object, from, until uint64) string {
	states := []string{"wanted by " + string(foo.GetUID())}
	for _, s := range h.between(child, from, until) {
		states = append(states, fmt.Sprintf("at version %d it %s", s.from, h.obstacle(child.kind, s, foo)))
	}
	return strings.Join(states, "; ")
}

// recorded is a state of an owner as test/artifacts/waiters reads it.
type recorded struct {
	// CarriedOut is true if there was a moment since the owner's generation began at which the
	// owner had all that it asks for, ready.
	CarriedOut bool           `json:"carriedOut"`
	Foo        map[string]any `json:"foo"`
}

// keep writes a state into a file that is named by its content, so that each is kept once.
func (h *History) keep(folder string, foo rows.Object, carriedOut bool) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(foo)
	if err != nil {
		return err
	}
	fields["apiVersion"], fields["kind"] = h.Owner.Resource.GroupVersion().String(), h.Owner.Kind.Kind
	metadata := map[string]any{"name": "recorded", "namespace": "recorded", "generation": foo.GetGeneration()}
	if foo.GetDeletionTimestamp() != nil {
		metadata["deletionTimestamp"] = "2026-11-21T12:00:00Z"
	}
	fields["metadata"] = metadata
	status, _ := fields["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, condition := range conditions {
		delete(condition.(map[string]any), "lastTransitionTime")
	}
	text, err := json.MarshalIndent(recorded{carriedOut, fields}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, fmt.Sprintf("%x.json", sha256.Sum256(text))), text, 0o600)
}
