// SPDX-License-Identifier: Apache-2.0

package plan

// View has what SetOwned may depend on besides the owner: the owner's children of the earlier rows.
type View struct {
	entries []entry
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
