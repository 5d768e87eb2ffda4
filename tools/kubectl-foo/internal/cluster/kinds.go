// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// Resource is one that is read.
type Resource struct {
	schema.GroupVersionResource

	Kind string
	// IsOptional means that without it, only parts of an explanation are missing.
	IsOptional bool

	// isTrimmed drops the managers of fields, which are a third to half of the memory.
	isTrimmed bool
}

func (r Resource) trimmed(object plan.Object) plan.Object {
	if r.isTrimmed {
		object.SetManagedFields(nil)
	}
	return object
}

func ownersOf(kind *plan.OwnerKind) Resource {
	return Resource{GroupVersionResource: kind.Resource, Kind: kind.Kind, isTrimmed: true}
}

// Owners returns the resources of the kinds.
func (k Kinds) Owners() []Resource {
	var owners []Resource
	for _, kind := range k {
		owners = append(owners, ownersOf(kind))
	}
	return owners
}

// Children returns the resources of the children of the kinds.
func (k Kinds) Children() []Resource {
	var children []Resource
	for _, kind := range k {
		for _, row := range kind.Children {
			children = adding(children, Resource{GroupVersionResource: row.Resource, Kind: row.Kind, isTrimmed: true})
		}
	}
	return children
}

// The resources of what Deployments lead to, and of Events.
var (
	ReplicaSets = Resource{appsv1.SchemeGroupVersion.WithResource("replicasets"), "ReplicaSet", true, true}
	Pods        = Resource{corev1.SchemeGroupVersion.WithResource("pods"), "Pod", true, true}
	Events      = Resource{corev1.SchemeGroupVersion.WithResource("events"), "Event", true, true}
)

// Explaining returns the resources that explain owners: their children, with the managers of their fields, and what these
// lead to.
func (k Kinds) Explaining() []Resource {
	all := k.Children()
	for i := range all {
		all[i].isTrimmed = false
	}
	return adding(all, ReplicaSets, Pods, Events)
}

// adding adds resources that are not there yet.
func adding(to []Resource, resources ...Resource) []Resource {
	for _, r := range resources {
		if !slices.ContainsFunc(to, func(known Resource) bool { return known.GroupVersionResource == r.GroupVersionResource }) {
			to = append(to, r)
		}
	}
	return to
}
