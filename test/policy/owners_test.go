// SPDX-License-Identifier: Apache-2.0

// Children of other kinds than Foo. The tests are written for Foos. What they send to the
// API server, what it answers, and the generated policies are translated here.

package policy

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/test/footest"
)

// wordFoo matches the kind Foo in a text, and its plural.
var wordFoo = regexp.MustCompile(`\b(Foos|Foo)\b`)

// ownerOf returns the kind whose objects own those of a resource.
func ownerOf(resource schema.GroupVersionResource) *footest.OwnerRow {
	if known := footest.Served(resource.Resource); known != nil {
		return known.Owner()
	}
	return footest.FooOwner // of a row that only a test has
}

// inWordsOf returns a text about Foos as one about a kind.
func inWordsOf(owner *footest.OwnerRow, text string) string {
	if owner == footest.FooOwner {
		return text
	}
	return wordFoo.ReplaceAllStringFunc(text, func(word string) string {
		if word == "Foos" {
			return pluralOf(owner)
		}
		return owner.Kind.Kind
	})
}

// pluralOf returns the plural of a kind, such as HTTPMice for HTTPMouse.
func pluralOf(owner *footest.OwnerRow) string {
	kind, resource := owner.Kind.Kind, owner.Resource.Resource
	same := 0
	for same < min(len(kind), len(resource)) && strings.ToLower(kind)[same] == resource[same] {
		same++
	}
	return kind[:same] + resource[same:]
}

// ownedBy returns a Foo's child as one of a kind.
func ownedBy(owner *footest.OwnerRow, child object) object {
	if child == nil || owner == footest.FooOwner {
		return child
	}
	child = child.DeepCopyObject().(object)
	refs := child.GetOwnerReferences()
	for i := range refs {
		refs[i].Kind = inWordsOf(owner, refs[i].Kind)
	}
	child.SetOwnerReferences(refs)
	return child
}

// ofFoos returns an answer about a kind as one about Foos.
func ofFoos(owner *footest.OwnerRow, answer error) error {
	if answer == nil || owner == footest.FooOwner {
		return answer
	}
	return errors.New(strings.ReplaceAll(answer.Error(), owner.Kind.Kind, footest.FooKind.Kind))
}

// A refusal is in the words of the kind.
func TestOtherOwnersAreTranslated(t *testing.T) {
	other := &footest.OwnerRow{Kind: &footest.Kind{}}
	other.Kind.Kind, other.Resource.Resource = "HTTPMouse", "httpmice"
	child := &metav1.PartialObjectMetadata{}
	child.SetOwnerReferences([]metav1.OwnerReference{ownerRef("Foo", "foo"), ownerRef("ConfigMap", "other")})
	refs := ownedBy(other, child).GetOwnerReferences()
	if refs[0].Kind != "HTTPMouse" || refs[1].Kind != "ConfigMap" || child.OwnerReferences[0].Kind != "Foo" {
		t.Errorf("the owners are %v, of the Foo's child %v", refs, child.OwnerReferences)
	}
	if got := inWordsOf(other, "Foos, wasAFoos, a Foo"); got != "HTTPMice, wasAFoos, a HTTPMouse" {
		t.Errorf("the text is %q", got)
	}
	if got := ofFoos(other, errors.New("only for a HTTPMouse")); got.Error() != "only for a Foo" {
		t.Errorf("the answer is %q", got)
	}
}
