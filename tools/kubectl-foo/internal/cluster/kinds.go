// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	"example.com/sample-controller/internal/plan"
)

// Kinds are the kinds of the program. A name alone is one of the first kind; one of another
// has its kind before it, as in "kind/name".
type Kinds []*plan.OwnerKind

// Parse returns the kind and the name that an argument means.
func (k Kinds) Parse(argument string) (kind *plan.OwnerKind, name string, err error) {
	word, name, found := strings.Cut(argument, "/")
	if !found {
		return k[0], argument, nil
	}
	var known []string
	for _, kind := range k {
		if word == kind.Resource.Resource || strings.EqualFold(word, kind.Kind) {
			return kind, name, nil
		}
		known = append(known, strings.ToLower(kind.Kind))
	}
	return nil, "", fmt.Errorf("%q is none of the kinds %s", word, strings.Join(known, ", "))
}

// Argument returns the argument that means an object of a kind.
func (k Kinds) Argument(kind *plan.OwnerKind, name string) string {
	if kind == k[0] {
		return name
	}
	return strings.ToLower(kind.Kind) + "/" + name
}

// First returns the name that an argument means where only the first kind will do.
func (k Kinds) First(argument string) (string, error) {
	kind, name, err := k.Parse(argument)
	if err == nil && kind != k[0] {
		return "", fmt.Errorf("timelines are of the kind %s alone", k[0].Kind)
	}
	return name, err
}
