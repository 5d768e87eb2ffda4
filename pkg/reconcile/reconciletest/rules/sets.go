// SPDX-License-Identifier: Apache-2.0

// The order in which the children of a set are written.

package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// WrongOrder says what is wrong with the time of a controller's write of a child of a set, or "": of several that
// are not asked for the last goes first, and with OneAtATime, the earlier ones have to be ready. The parameters are those
// of WrongWrite. A controller can't know the order by a cache that lacks some of the children.
func (w World) WrongOrder(stored, next rows.Object, known func(name string) rows.Object) string {
	child := cmp.Or(next, stored)
	kind, owner := w.Owner.KindOf(child), w.OwnerOf(child)
	switch {
	case owner == nil || !kind.IsSet():
		return ""
	case next == nil:
		return w.wrongLast(kind, owner, child, known)
	case kind.OneAtATime:
		return w.wrongTurn(kind, owner, child, known)
	}
	return ""
}

// wrongLast says which other child has to be deleted before one, or "". Those that serve may have to stay.
func (w World) wrongLast(kind *rows.Kind, owner, child rows.Object, known func(name string) rows.Object) string {
	names := kind.Names(owner)
	for _, other := range w.Objects {
		isLeft := kind.Is(other) && w.Owner.Controls(owner, other) && other.GetDeletionTimestamp() == nil && !slices.Contains(names, other.GetName())
		if !isLeft || known(other.GetName()) == nil || slices.Contains(w.Undeletable, other.GetName()) || kind.Serves(other) && !kind.Serves(child) {
			continue
		}
		if isLater(other.GetName(), child.GetName()) {
			return fmt.Sprintf("although %s goes first", other.GetName())
		}
	}
	return ""
}

// wrongTurn says which child before one has to be ready, or "".
func (w World) wrongTurn(kind *rows.Kind, owner, child rows.Object, known func(name string) rows.Object) string {
	for _, name := range kind.Names(owner) {
		if name == child.GetName() {
			return ""
		}
		earlier := known(name)
		if earlier == nil || !w.Owner.Controls(owner, earlier) || earlier.GetDeletionTimestamp() != nil {
			return fmt.Sprintf("although %s %s is not seen to have %s", w.Owner, owner.GetName(), name)
		}
		if lacks := cmp.Or(w.differsAsSeen(kind, earlier, owner), kind.Unready(earlier)); lacks != "" {
			return fmt.Sprintf("although %s, as it was seen, %s", name, lacks)
		}
	}
	return ""
}

// isLater reports whether a name has a larger number at its end than another one, or comes later in the alphabet.
func isLater(a, b string) bool {
	prefixA, prefixB := strings.TrimRight(a, digits), strings.TrimRight(b, digits)
	numberA, numberB := strings.TrimLeft(a[len(prefixA):], "0"), strings.TrimLeft(b[len(prefixB):], "0")
	return cmp.Or(cmp.Compare(prefixA, prefixB), cmp.Compare(len(numberA), len(numberB)), cmp.Compare(numberA, numberB)) > 0
}

const digits = "0123456789"
