// SPDX-License-Identifier: Apache-2.0

// What an owner says of the objects that it names.

package rules

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// wrongReference returns the reason that an owner's status must give for the objects that it names, or "", whether
// nothing happens then without someone else, and whether the children wait for them.
func (w World) wrongReference(foo rows.Object) (obstacle string, isStalled, isBlocked bool) {
	for _, reference := range w.Owner.References {
		for _, name := range reference.Names(foo) {
			reason, isFinal := reference.Kind.Kind+plan.SuffixMissing, true
			if object := reference.Kind.Find(w.Objects, name); object != nil {
				reason, isFinal = reference.Unfit(object)
			}
			if reason != "" && obstacle == "" {
				obstacle, isStalled = reason, isFinal
			}
			isBlocked = isBlocked || reason != "" && reference.Blocks
		}
	}
	return obstacle, isStalled, isBlocked
}

// LacksReferences reports whether an owner names an object that is missing or unfit.
func (w World) LacksReferences(foo rows.Object) bool {
	obstacle, _, _ := w.wrongReference(foo)
	return obstacle != ""
}

// differsAsSeen is like differs, for one who may not have seen yet what has changed in the objects that the owner names.
func (w World) differsAsSeen(kind *rows.Kind, child, foo rows.Object) string {
	if len(w.Owner.References) == 0 {
		return w.differs(kind, child, foo)
	}
	return kind.DiffersIn(child, foo, func(kind *rows.Kind, name string) rows.Object {
		if its := kind.Find(w.Objects, name); its != nil && w.Owner.Controls(foo, its) {
			return its
		}
		return nil
	})
}

// minRevealing is the length of the shortest text that reveals what is in an object. A shorter one occurs by chance.
const minRevealing = 6

// Revealed says what a text tells of the data of objects that owners name, or "".
func (w World) Revealed(text string) string {
	if len(w.Owner.References) == 0 {
		return ""
	}
	for _, object := range w.Objects {
		if !w.Owner.IsReferenced(object) {
			continue
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err.Error()
		}
		for _, part := range []string{"apiVersion", "kind", "metadata", "type"} {
			delete(fields, part)
		}
		if value := revealed(fields, text); value != "" {
			return fmt.Sprintf("which has %q of %s %s", value, w.Owner.KindOf(object), object.GetName())
		}
	}
	return ""
}

// revealed returns a text in a value that is a part of another text, or "".
func revealed(value any, in string) string {
	var all []any
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			all = append(all, field)
		}
	case []any:
		all = value
	case string:
		if len(value) >= minRevealing && strings.Contains(in, value) {
			return value
		}
		if plain, err := base64.StdEncoding.DecodeString(value); err == nil && len(plain) >= minRevealing && strings.Contains(in, string(plain)) {
			return string(plain)
		}
	}
	for _, part := range all {
		if found := revealed(part, in); found != "" {
			return found
		}
	}
	return ""
}

// RevealedIn is like Revealed, for the status of an owner.
func (w World) RevealedIn(foo rows.Object) string {
	text, err := json.Marshal(rows.StatusOf(foo))
	if err != nil {
		return err.Error()
	}
	return w.Revealed(string(text))
}
