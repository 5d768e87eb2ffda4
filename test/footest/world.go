// SPDX-License-Identifier: Apache-2.0

// The objects that the fuzz targets make from their inputs.

package footest

import (
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/randfill/bytesource"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// A fuzz target gets three arguments: a script, noise, and words. The script is a fooCase
// and up to three childCases, as bytes. Each byte chooses from a list in builders.go, so that
// any script is valid, a changed byte changes one thing, and 0 is the plain case: the Foo
// "a" in its desired state. The noise fills fields that belong to others, and the words
// are texts of users and servers. The objects are such as an API server could have stored.

// fooCase describes the Foo "a".
type fooCase struct {
	Name, Replicas, Deleting, Status byte
	// Words is the number of repetitions of the words.
	Words byte
	// Live is the change of the Foo that the cache has not seen.
	Live byte
	// Unset has a bit for each optional child that the Foo does not ask for.
	Unset byte
}

// ChildCase describes a child of each kind. It is ignored if its name is taken.
type ChildCase struct {
	Name, Owner, AdoptBy, Deleting byte
	// Selector, Optional and Progress are details that only some kinds have.
	Selector, Content, Optional, Progress byte
	// Unseen chooses whether the cache lacks the child, and Live the change of it that the
	// cache has not seen.
	Unseen, Live byte
}

const maxChildren = 3

// script encodes the cases as a script.
func script(foo fooCase, children ...ChildCase) []byte {
	text, err := binary.Append(nil, binary.BigEndian, foo)
	for _, child := range children {
		if err == nil {
			text, err = binary.Append(text, binary.BigEndian, child)
		}
	}
	if err != nil {
		panic(err)
	}
	return text
}

// readScript decodes a script. Missing bytes are 0.
func readScript(text []byte) (foo fooCase, children []ChildCase) {
	text = readCase(text, &foo)
	for len(text) > 0 && len(children) < maxChildren {
		var next ChildCase
		text = readCase(text, &next)
		children = append(children, next)
	}
	return foo, children
}

func readCase(text []byte, into any) (rest []byte) {
	whole := make([]byte, binary.Size(into))
	read := copy(whole, text)
	if _, err := binary.Decode(whole, binary.BigEndian, into); err != nil {
		panic(err)
	}
	return text[read:]
}

// FuzzWorld holds the Foo "a", or an object of another kind of the program, and the
// objects of all kinds of children in its namespace, as in the caches but before the
// transformer.
type FuzzWorld struct {
	Owner    *OwnerRow
	Foo      Object
	Children []Object
	Words    string

	// foo is Foo, or a Foo from which that was made.
	foo     *samplev1alpha1.Foo
	fooCase fooCase
	// childCases has the case of each of Children.
	childCases []ChildCase
}

// NewFuzzWorld makes a FuzzWorld of a kind from the arguments of a fuzz target.
func NewFuzzWorld(t *testing.T, owner *OwnerRow, text, noise []byte, words string) *FuzzWorld {
	t.Helper()
	how, others := readScript(text)
	w := &FuzzWorld{Owner: owner, fooCase: how, Words: repeated(words, pick(how.Words, repeats))}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the world was %+v and %+v", w.fooCase, others)
		}
	})
	w.foo = Foo("a", WithChildName(pick(how.Name, wantedNames)), pick(how.Replicas, wantedSizes), WithStatus(pick(how.Status, fooStatuses)()))
	if pick(how.Deleting, deletings) {
		BeingDeleted(w.foo)
	}
	if pick(how.Deleting, suspending) {
		Suspended(w.foo)
	}
	w.Foo = w.asking(w.foo)
	fill := newFiller(noise)
	for _, kind := range owner.Kinds {
		for _, other := range others {
			name := pick(other.Name, childNames)
			if name == Primary.Name(w.foo) {
				name = kind.Name(w.Foo)
			}
			if kind.Find(w.Children, name) == nil {
				w.childCases = append(w.childCases, other)
				w.Children = append(w.Children, newFuzzChild(kind, Like(owner, Foo("a")), name, other, fill, w.Words))
			}
		}
	}
	return w
}

// asking returns an owner like a Foo, which asks for those of the optional children that the
// script says.
func (w *FuzzWorld) asking(foo *samplev1alpha1.Foo) Object {
	like := Like(w.Owner, foo)
	for i, kind := range w.Owner.Kinds {
		if like != nil && w.fooCase.Unset&(1<<i) != 0 {
			kind.Unset(like)
		}
	}
	return like
}

// repeated repeats words, as far as an API server could store the text.
func repeated(words string, times int) string {
	const limit = 40_000 // more characters than a condition's message may have
	valid := strings.ToValidUTF8(words, "?")
	return strings.Repeat(valid, min(times, 1+limit/max(1, utf8.RuneCountInString(valid))))
}

func newFuzzChild(kind *Kind, foo Object, name string, how ChildCase, fill *Filler, words string) Object {
	object := kind.Created(kind.New(foo))
	fuzz(kind, object, how, fill, words)
	object.SetName(name)
	object.SetUID(types.UID("uid-" + name))
	object.SetResourceVersion("20")
	object.SetCreationTimestamp(metav1.NewTime(Earlier.Add(-time.Hour)))
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}})
	object.SetOwnerReferences(ofKind(kind, pick(how.Owner, owners)))
	if int(how.Owner)%len(owners) == ownerAnotherKind {
		object.SetOwnerReferences([]metav1.OwnerReference{ownerRef("samplecontroller.k8s.io/v1alpha1", "Bar", ownerName(words), "uid-a", true)})
	}
	if pick(how.Deleting, deletings) {
		Terminating(object)
	}
	addNoise(object, fill)
	if by := pick(how.AdoptBy, adoptions); by != "" {
		object.SetAnnotations(with(object.GetAnnotations(), samplev1alpha1.AnnotationAdoptBy, by))
	}
	// Do not change the objects of the lists.
	return rows.CopyOf(object)
}

// fuzzers make children of a case of the kinds that have details of their own.
var fuzzers = map[*Kind]func(object Object, c ChildCase, fill *Filler, words string){Primary: fuzzDeployment}

// fuzz makes an object, which is as the Foo "a" asks, one of the cases. By default it has drifted,
// was edited, or has arbitrary fields.
func fuzz(kind *Kind, object Object, c ChildCase, fill *Filler, words string) {
	switch own := fuzzers[kind]; {
	case own != nil:
		own(object, c, fill, words)
	case pick(c.Content, contents) == contentDrifted:
		kind.Drift(object, nil)
	case pick(c.Content, contents) == contentEdited:
		kind.Edit(object, "fuzz")
	case pick(c.Content, contents) == contentMissing && fill != nil:
		fields := reflect.ValueOf(object).Elem()
		for i := range fields.NumField() {
			if name := fields.Type().Field(i).Name; name != "TypeMeta" && name != "ObjectMeta" {
				fill.Fill(fields.Field(i).Addr().Interface())
			}
		}
	}
}

// with returns texts with one more.
func with(texts map[string]string, key, value string) map[string]string {
	texts = maps.Clone(texts)
	if texts == nil {
		texts = map[string]string{}
	}
	texts[key] = value
	return texts
}

// ownerName makes an owner's name of words. It may be anything but empty.
func ownerName(words string) string {
	if words == "" {
		return "bar"
	}
	return words
}

// Filler fills fields with arbitrary values.
type Filler = randfill.Filler

// newFiller returns a filler that takes its values from noise, or nil if there is no
// noise.
func newFiller(noise []byte) *Filler {
	if len(noise) == 0 {
		return nil
	}
	return randfill.New().NilChance(.5).NumElements(0, 2).RandSource(bytesource.New(noise)).
		Funcs(FillFuncs()...)
}

// FillFuncs are for a Filler: values of types that can't be filled field by field, or that no API
// server stores as they are then.
func FillFuncs() []any {
	const anyObject = `{"kind":"Any"}`
	return []any{
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		},
		func(fields *metav1.FieldsV1, _ randfill.Continue) { fields.SetRawString("{}") },
		func(raw *runtime.RawExtension, _ randfill.Continue) { raw.Raw = []byte(anyObject) },
		func(o *runtime.Object, _ randfill.Continue) { *o = &runtime.Unknown{Raw: []byte(anyObject)} },
	}
}

// addNoise fills the labels and annotations of an object.
func addNoise(object Object, fill *Filler) {
	if fill == nil {
		return
	}
	var labels, annotations map[string]string
	fill.Fill(&labels)
	fill.Fill(&annotations)
	delete(annotations, samplev1alpha1.AnnotationAdoptBy)
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// Live returns the objects as the API server has them.
func (w *FuzzWorld) Live() *FuzzWorld {
	live := &FuzzWorld{Owner: w.Owner, fooCase: w.fooCase}
	live.Foo = live.asking(pick(w.fooCase.Live, fooNews)(w.foo.DeepCopy()))
	for i, child := range w.Children {
		if now := pick(w.childCases[i].Live, childNews)(rows.CopyOf(child)); now != nil {
			now.SetOwnerReferences(ofKind(KindOf(child), now.GetOwnerReferences()))
			live.Children = append(live.Children, now)
		}
	}
	return live
}

// Seen returns the children in the cache.
func (w *FuzzWorld) Seen() []Object {
	var seen []Object
	for i, child := range w.Children {
		if w.childCases[i].Unseen%2 == 0 {
			seen = append(seen, child)
		}
	}
	return seen
}

// Stale reports whether the caches are stale.
func (w *FuzzWorld) Stale() bool {
	stale := int(w.fooCase.Live)%len(fooNews) != 0
	for _, how := range w.childCases {
		stale = stale || how.Unseen%2 != 0 || int(how.Live)%len(childNews) != 0
	}
	return stale
}

// Refused reports whether the API server refuses any child that the Foo asks for.
func (w *FuzzWorld) Refused() bool {
	return slices.ContainsFunc(w.Owner.Kinds, func(kind *Kind) bool { return Refuses(kind, w.Foo) })
}

// Refuses reports whether the API server refuses any child of a kind that a Foo asks for.
func Refuses(kind *Kind, foo Object) bool {
	child := kind.New(foo)
	return kind.Wanted(foo) && (child.GetName() == "" || kind.Invalid(child))
}

// FuzzSeed is an input that a fuzz target starts from.
type FuzzSeed struct {
	Name          string
	Script, Noise []byte
	Words         string
}

// FuzzSeeds lead to every decision and every reason, so that short runs cover them, too.
// Those of a kind are for what is particular to it.
var FuzzSeeds = slices.Concat([]FuzzSeed{
	{Name: "all is as it should be", Script: script(fooCase{Status: 1}, ChildCase{})},
	{Name: "no child", Script: script(fooCase{})},
	{Name: "drift", Script: script(fooCase{Status: 1}, ChildCase{Content: contentDrifted, Optional: 1})},
	{Name: "others' fields, and drift", Script: script(fooCase{Name: 1}, ChildCase{Name: 1, Content: contentMissing}), Noise: []byte("all kinds of things")},
	{Name: "an autoscaler's replicas", Script: script(fooCase{Replicas: 1}, ChildCase{Optional: 1})},
	{Name: "another Foo's", Script: script(fooCase{}, ChildCase{Owner: ownerOtherFoo})},
	{Name: "an earlier Foo's", Script: script(fooCase{Status: 1}, ChildCase{Owner: ownerEarlierFoo})},
	{Name: "another group's", Script: script(fooCase{}, ChildCase{Owner: ownerFooOfAnotherGroup})},
	{Name: "nobody's", Script: script(fooCase{Status: 2}, ChildCase{Owner: ownerNobody})},
	{Name: "of another version of the API", Script: script(fooCase{}, ChildCase{Owner: ownerThisFooInAnotherVersion})},
	{Name: "owned, not controlled", Script: script(fooCase{}, ChildCase{Owner: ownerThisFooButNotItsController})},
	{Name: "controlled by another, owned by the Foo", Script: script(fooCase{}, ChildCase{Owner: ownerAnotherControlsThisFooOwns, AdoptBy: 1})},
	{Name: "another kind's, with a name", Script: script(fooCase{}, ChildCase{Owner: ownerAnotherKind}), Words: "\"\u00e4\n"},
	{Name: "handed over", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 1}), Noise: []byte("0123456789abcdef")},
	{Name: "handed over to another", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 2})},
	{Name: "renamed", Script: script(fooCase{}, ChildCase{Name: 1}, ChildCase{Name: 2})},
	{Name: "renamed twice, half-way", Script: script(fooCase{Status: 3}, ChildCase{}, ChildCase{Name: 1}, ChildCase{Name: 2})},
	{Name: "renamed onto another's", Script: script(fooCase{}, ChildCase{Name: 1}, ChildCase{Owner: ownerOtherFoo})},
	{Name: "renamed onto one that is handed over", Script: script(fooCase{}, ChildCase{Name: 1}, ChildCase{Owner: ownerNobody, AdoptBy: 1})},
	{Name: "the Foo is being deleted", Script: script(fooCase{Deleting: 1}, ChildCase{Content: contentDrifted})},
	{Name: "the Foo is suspended", Script: script(fooCase{Deleting: 2}, ChildCase{Content: contentDrifted})},
	{Name: "the child is being deleted", Script: script(fooCase{}, ChildCase{Deleting: 1, Content: contentDrifted})},
	{Name: "a spec from before the rules, long words", Script: script(fooCase{Name: 3, Replicas: 4, Words: 2}), Words: "\u00e4\u00f6\u00fc"},
}, deploymentSeeds)

// StaleSeeds are inputs with stale caches.
var StaleSeeds = []FuzzSeed{
	{Name: "drift, and the Foo has been renamed", Script: script(fooCase{Live: 2}, ChildCase{Content: contentDrifted})},
	{Name: "drift, and the Foo has been made again", Script: script(fooCase{Live: 4}, ChildCase{Content: contentDrifted})},
	{Name: "drift, and the child has been taken", Script: script(fooCase{}, ChildCase{Content: contentDrifted, Live: 3})},
	{Name: "drift, and a user has made it again", Script: script(fooCase{}, ChildCase{Content: contentDrifted, Live: 6})},
	{Name: "there, but not in the cache", Script: script(fooCase{}, ChildCase{Unseen: 1})},
	{Name: "another's, but not in the cache", Script: script(fooCase{}, ChildCase{Owner: ownerOtherFoo, Unseen: 1})},
	{Name: "renamed there and back", Script: script(fooCase{Name: 1}, ChildCase{}, ChildCase{Name: 1, Live: 1})},
	{Name: "renamed, and the old one has been taken", Script: script(fooCase{}, ChildCase{}, ChildCase{Name: 1, Live: 3})},
	{Name: "renamed, and the new one is gone", Script: script(fooCase{}, ChildCase{Live: 1}, ChildCase{Name: 1})},
	{Name: "renamed, and the Foo is gone", Script: script(fooCase{Live: 1}, ChildCase{}, ChildCase{Name: 1})},
	{Name: "handed over, and taken", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 1, Live: 3})},
	{Name: "handed over, then to another", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 1, Live: 7})},
	{Name: "another's, then the Foo's", Script: script(fooCase{}, ChildCase{Owner: ownerOtherFoo, Live: 4})},
}

// AddSeeds adds seeds to a fuzz target.
func AddSeeds(f *testing.F, seeds []FuzzSeed) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed.Script, seed.Noise, seed.Words)
	}
}
