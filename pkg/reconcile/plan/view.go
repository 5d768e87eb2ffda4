// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// View has what SetOwned may depend on besides the owner: the owner's children of the earlier rows, and digests of
// the objects that the owner names.
type View struct {
	// of is the kind of the owner. nil means that nothing is declared.
	of      *Kind
	entries []entry
	// digests has the kinds of which the owner names objects.
	digests map[string]string
}

// NewView returns a view of an owner of the kind of which nothing has been read.
func (k *Kind) NewView() *View { return &View{of: k} }

type entry struct {
	kind  string
	child Object
}

// Child returns the owner's child of an earlier row, as last read or written, or nil if the owner
// has none. Of a set, it returns the first.
func (v *View) Child(kind string) Object {
	if v != nil {
		for _, known := range v.entries {
			if known.kind == kind {
				return known.child
			}
		}
	}
	return nil
}

// Children returns the owner's children of an earlier row, as last read or written, in the order of their
// row.
func (v *View) Children(kind string) (children []Object) {
	if v == nil {
		return nil
	}
	for _, known := range v.entries {
		if known.kind == kind {
			children = append(children, known.child)
		}
	}
	return children
}

// Digest returns a hash of what was read of the objects of a kind that the owner names. It is "" if one is missing or
// could not be read, or if the owner names none. It panics if the kind's table has no reference of this kind with a
// Digest, because children would silently never follow it.
func (v *View) Digest(kind string) string {
	if v == nil {
		return ""
	}
	v.requireDigest(kind)
	return v.digests[kind]
}

// AnnotateDigest sets an annotation to the digest of the objects of a kind that the owner names. It leaves it as it is while
// one of them is missing or could not be read, so that a Secret that is deleted restarts no Pods, and removes it if the owner
// names none. It panics as Digest does. Copy the annotation in Keep: see KeepAnnotations.
func (v *View) AnnotateDigest(to *metav1.ObjectMeta, annotation, kind string) {
	if v == nil {
		return
	}
	v.requireDigest(kind)
	switch digest, isNamed := v.digests[kind]; {
	case digest != "":
		metav1.SetMetaDataAnnotation(to, annotation, digest)
	case !isNamed:
		delete(to.Annotations, annotation)
	}
}

// KeepAnnotations copies annotations to what the cache keeps. They are cut to MaxKept bytes.
func KeepAnnotations(kept, found *metav1.ObjectMeta, annotations ...string) {
	for _, annotation := range annotations {
		if value, isSet := found.Annotations[annotation]; isSet {
			metav1.SetMetaDataAnnotation(kept, annotation, Truncate(value, MaxKept))
		}
	}
}

func (v *View) requireDigest(kind string) {
	if v.of == nil {
		return
	}
	var declared []string
	for _, of := range v.of.References {
		switch {
		case of.Kind != kind:
			declared = append(declared, of.Kind)
		case of.hasDigest:
			return
		default:
			panic(fmt.Sprintf("the reference of %s to the kind %q has no Digest: declare what children depend on", v.of.Name, kind))
		}
	}
	panic(fmt.Sprintf("the table of %s has no reference to the kind %q, but to %q: correct the name, or add table.Uses", v.of.Name, kind, declared))
}

func (v *View) setDigest(kind, digest string) {
	if v.digests == nil {
		v.digests = map[string]string{}
	}
	v.digests[kind] = digest
}

// withoutDigests returns the view as if nothing had been read of what the owner names.
func (v *View) withoutDigests() *View {
	unread := &View{of: v.of, entries: v.entries}
	for kind := range v.digests {
		unread.setDigest(kind, "")
	}
	return unread
}

// Observe records a child as read or written.
func (v *View) Observe(kind string, child Object) {
	for i, known := range v.entries {
		if known.kind == kind && known.child.GetName() == child.GetName() {
			v.entries[i].child = child
			return
		}
	}
	v.entries = append(v.entries, entry{kind, child})
}
