// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/pkg/reconcile/plan"
)

// Kinds are the program's kinds. A name alone means an object of the first kind. For another
// kind, the kind precedes the name, as in "kind/name".
type Kinds []*plan.Kind

// Parse returns the kind and the name in an argument.
func (k Kinds) Parse(argument string) (kind *plan.Kind, name string, err error) {
	word, name, found := strings.Cut(argument, "/")
	if !found {
		return k[0], argument, nil
	}
	var known []string
	for _, kind := range k {
		if word == kind.Resource.Resource || strings.EqualFold(word, kind.Name) {
			return kind, name, nil
		}
		known = append(known, strings.ToLower(kind.Name))
	}
	return nil, "", fmt.Errorf("unknown kind %q: must be one of %s", word, strings.Join(known, ", "))
}

// Argument returns the argument for an object of a kind.
func (k Kinds) Argument(kind *plan.Kind, name string) string {
	if kind == k[0] {
		return name
	}
	return strings.ToLower(kind.Name) + "/" + name
}

// Resource is a resource to read.
type Resource struct {
	schema.GroupVersionResource

	Kind string
	// IsOptional means that without the resource, only parts of an explanation are missing.
	IsOptional bool
}

func ownersOf(kind *plan.Kind) Resource {
	return Resource{GroupVersionResource: kind.Resource, Kind: kind.Name}
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
			children = append(children, Resource{GroupVersionResource: row.Resource, Kind: row.Kind})
		}
	}
	return children
}

// The resources of the objects that Deployments lead to, and of Events.
var (
	ReplicaSets = Resource{appsv1.SchemeGroupVersion.WithResource("replicasets"), "ReplicaSet", true}
	Pods        = Resource{corev1.SchemeGroupVersion.WithResource("pods"), "Pod", true}
	Events      = Resource{corev1.SchemeGroupVersion.WithResource("events"), "Event", true}
)

// Explaining returns the resources that explain owners: their children, and what these lead to.
func (k Kinds) Explaining() []Resource { return append(k.Children(), ReplicaSets, Pods, Events) }
