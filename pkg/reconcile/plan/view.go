// SPDX-License-Identifier: Apache-2.0

package plan

// View has what SetOwned may depend on besides the owner: the owner's children of the earlier rows, and digests of
// the objects that the owner names.
type View struct {
	entries []entry
	digests map[string]string
}

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
// could not be read: leave the child as it is then, so that a Secret that is deleted restarts no Pods.
func (v *View) Digest(kind string) string {
	if v == nil {
		return ""
	}
	return v.digests[kind]
}

func (v *View) setDigest(kind, digest string) {
	if v.digests == nil {
		v.digests = map[string]string{}
	}
	v.digests[kind] = digest
}

func (v *View) withoutDigests() *View { return &View{entries: v.entries} }

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
