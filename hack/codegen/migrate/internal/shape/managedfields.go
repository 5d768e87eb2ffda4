// SPDX-License-Identifier: Apache-2.0

// metadata.managedFields: an entry of a version that is gone makes every server-side apply of
// its object fail (kubernetes/kubernetes#111937).

package shape

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// MoveManagedFields returns the entries with those of the old version moved to the new one, or
// with back the other way around. Who owned a field owns the other version's field afterwards.
// Two entries that are then alike become one: the API server would drop one of them.
func (d *Declaration) MoveManagedFields(entries []metav1.ManagedFieldsEntry, back bool) ([]metav1.ManagedFieldsEntry, error) {
	dead, alive := d.Group()+"/"+d.Old, d.Group()+"/"+d.New
	if back {
		dead, alive = alive, dead
	}
	var moved []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		set, err := ownedBy(entry)
		if err != nil {
			return nil, err
		}
		if entry.APIVersion == dead {
			entry.APIVersion = alive
			for i := range d.Changes {
				set = d.Changes[i].moveOwned(set, back)
			}
		}
		if same := slices.IndexFunc(moved, isLike(entry)); same >= 0 {
			other, err := ownedBy(moved[same])
			if err != nil {
				return nil, err
			}
			set = set.Union(other)
			moved = slices.Delete(moved, same, same+1)
		}
		text, err := set.ToJSON()
		if err != nil {
			return nil, err
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(text))
		moved = append(moved, entry)
	}
	return moved, nil
}

// ownedBy returns the fields of an entry.
func ownedBy(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if raw := entry.FieldsV1.GetRawBytes(); len(raw) > 0 {
		if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
			return nil, fmt.Errorf("the managedFields of %s: %w", entry.Manager, err)
		}
	}
	return set, nil
}

// isLike returns a function that reports whether an entry identifies the same manager, as the
// API server does it.
func isLike(a metav1.ManagedFieldsEntry) func(metav1.ManagedFieldsEntry) bool {
	return func(b metav1.ManagedFieldsEntry) bool {
		return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource && a.APIVersion == b.APIVersion
	}
}

// moveOwned replaces the fields of one side of a change by those of the other.
func (c *Change) moveOwned(set *fieldpath.Set, back bool) *fieldpath.Set {
	from, to := c.From, c.To
	if back {
		from, to = to, from
	}
	moved := fieldpath.NewSet()
	for path := range set.All() {
		side := slices.IndexFunc(from, func(field string) bool {
			at := pathOf(field)
			return len(path) >= len(at) && path[:len(at)].Equals(at)
		})
		switch {
		case side < 0:
			moved.Insert(path.Copy())
		case c.Form == "rename": // what is in it has the same schema
			moved.Insert(append(pathOf(to[0]), path[len(pathOf(from[0])):]...).Copy())
		default:
			for _, field := range to {
				moved.Insert(pathOf(field))
			}
		}
	}
	return moved
}

func pathOf(field string) (path fieldpath.Path) {
	for name := range strings.SplitSeq(field, ".") {
		path = append(path, fieldpath.PathElement{FieldName: &name})
	}
	return path
}
