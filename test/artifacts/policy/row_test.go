// SPDX-License-Identifier: Apache-2.0

// What the tests know of a kind of children, and objects with random content.

package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/randfill"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

// row is a row of the table in internal/kinds, with its own cases.
type row struct {
	*plan.ChildKind
	// plausible gives a child with random content what the API server requires, or what
	// makes it interesting. It may be nil.
	plausible func(child object, random *rand.Rand)
	// others adds what other users of a namespace may add to a Foo's child. It may be nil.
	others func(child object)
	// creates and updates are attempts with the controller's token to write a new child,
	// or that of a Foo with others' fields, beside those of any kind.
	creates, updates []attempt[object]
	// adoptions are updates of a child of no one, which agrees to be adopted.
	adoptions []attempt[object]

	// admits is the type of a child if its policy lets be what admission adds, in the classes of its fields.
	admits reflect.Type
}

// attempt is a write with the controller's token. It changes what the controller would
// write.
type attempt[T any] struct {
	what   string
	change func(T)
	// refusal is part of the policy's message, or "" if the policy accepts the write.
	refusal string
}

// rowsWithCases are those that have their own cases, by their kind.
var rowsWithCases = map[string]*row{"Deployment": deployments}

// rows are the rows of all kinds of the program.
var rows = func() (rows []*row) {
	for _, owner := range kinds.Declared(kinds.Options{Image: shippedImage}) {
		for _, child := range owner.Children {
			r := rowsWithCases[child.Kind]
			if r == nil {
				r = &row{}
			}
			r.ChildKind = child
			rows = append(rows, r)
		}
	}
	return rows
}()

// anyType returns attempts with objects of a type as such with objects of any.
func anyType[T object](typed ...attempt[T]) (untyped []attempt[object]) {
	for _, a := range typed {
		untyped = append(untyped, attempt[object]{a.what, func(child object) { a.change(child.(T)) }, a.refusal})
	}
	return untyped
}

func (r *row) resource(t *testing.T) schema.GroupVersionResource {
	t.Helper()
	return resourceOf(kindOf(t, r.Empty()))
}

// seenBy returns the children of the earlier rows, as a Foo asks.
func (r *row) seenBy(foo plan.Owner) *plan.View {
	view := &plan.View{}
	for _, earlier := range r.OwnerKind.Children {
		if earlier == r.ChildKind {
			break
		}
		if earlier.Wanted(foo) {
			view.Observe(earlier.Kind, earlier.Desired(foo, nil, view))
		}
	}
	return view
}

// owner returns the kind of the Foos.
func (r *row) owner() *footest.OwnerRow {
	return footest.Owners[slices.IndexFunc(footest.Owners, func(o *footest.OwnerRow) bool { return o.Kind.Kind == r.OwnerKind.Name })]
}

// ask makes a Foo ask for a child.
func (r *row) ask(foo plan.Owner) {
	for _, known := range r.owner().Kinds {
		if known.Kind == r.Kind && !r.Wanted(foo) {
			known.Ask(foo)
		}
	}
}

// wanting returns Foos that ask for different children of the kind.
func (r *row) wanting() (all []plan.Owner) {
	for _, foo := range []plan.Owner{
		r.newFoo("foo", 1), r.newFoo("without-replicas", 0),
		r.newFoo("a-name-of-63-characters-0123456789-0123456789-0123456789-0123456", 10),
	} {
		r.ask(foo)
		all = append(all, foo)
	}
	return all
}

// variesWith returns a function that reports whether the value at a path, in an object that is made
// for a Foo, depends on more of the Foo than its name. A policy can't read the Foo, so such a value
// may be any. All names of Foos count as equal, wherever they are in the object.
func (r *row) variesWith(t *testing.T, made func(foo plan.Owner) object) func(at path) bool {
	t.Helper()
	var first any
	varying := sets.New[string]()
	for seed := range int64(23) {
		foo := r.newFoo(fmt.Sprintf("various-%d", seed), int32(seed%3))
		if seed > 2 {
			randfill.NewWithSeed(seed).NilChance(.2).NumElements(1, 2).Funcs(footest.FillFuncs()...).Fill(foo.GetSpec())
		}
		r.ask(foo)
		text, err := json.Marshal(stored(t, made(foo)))
		footest.Must(t, err)
		var fields map[string]any
		footest.Must(t, json.Unmarshal(bytes.ReplaceAll(text, []byte(foo.GetName()), []byte("NAME")), &fields))
		delete(fields, "metadata")
		if first == nil {
			first = fields
		}
		differences(first, fields, nil, func(at path) { varying.Insert(fmt.Sprint(at)) })
	}
	return func(at path) bool {
		for i := range len(at) + 1 {
			if varying.Has(fmt.Sprint(at[:i])) {
				return true
			}
		}
		return false
	}
}

// chosen are the fields that the API server sets beside its defaults, before it asks the policy: [*] stands
// for each element of a list.
var chosen = map[schema.GroupResource][]string{
	{Resource: "services"}: {"spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy", "spec.ports.[*].nodePort"},
}

// isChosen reports whether the API server sets the value at a path in a new child, or one around it.
func (r *row) isChosen(t *testing.T, at path) bool {
	t.Helper()
	var field []string
	for _, key := range at {
		if _, isIndex := key.(int); isIndex {
			key = "[*]"
		}
		field = append(field, key.(string))
	}
	return slices.ContainsFunc(chosen[r.resource(t).GroupResource()], func(set string) bool {
		return strings.HasPrefix(strings.Join(field, ".")+".", set+".")
	})
}

func (r *row) newFoo(name string, size int32) plan.Owner {
	foo := r.owner().New(name, "web", size).(plan.Owner)
	foo.SetNamespace(namespace)
	foo.SetUID(types.UID("uid-" + name))
	foo.SetGeneration(1)
	return foo
}

// own returns a Foo's child as the API server stores it, with others' fields.
func (r *row) own(t *testing.T, foo plan.Owner) object {
	t.Helper()
	child := r.Desired(foo, nil, r.seenBy(foo))
	setMetadata(child)
	child.SetAnnotations(map[string]string{"team": "blue", samplev1alpha1.AnnotationAdoptBy: foo.GetName()})
	if r.others != nil {
		r.others(child)
	}
	return stored[object](t, child)
}

// full is the seed of a child in which all fields are set. That of a workload has the
// container nginx.
const full = 0

// random returns a Foo's child with random content, as the API server stores it. In one of
// ten, all fields are set.
func (r *row) random(t *testing.T, foo plan.Owner, seed uint64) object {
	t.Helper()
	nilChance := .5
	if seed%10 == full {
		nilChance = 0
	}
	fill := randfill.NewWithSeed(int64(seed)).NilChance(nilChance).NumElements(1, 1).Funcs(footest.FillFuncs()...).Funcs(
		nilable[intstr.IntOrString](nilChance), nilable[metav1.Time](nilChance), nilable[metav1.MicroTime](nilChance),
		func(m *metav1.ObjectMeta, _ randfill.Continue) {
			*m = metav1.ObjectMeta{
				Labels: map[string]string{"team": "blue"}, Annotations: map[string]string{"team": "blue"},
				Finalizers: []string{"example.com/hold"},
			}
		})
	child := r.Empty()
	fill.Fill(child)
	if nilChance == 0 {
		eachValue(reflect.ValueOf(child), func(value reflect.Value) {
			if value.Kind() == reflect.Pointer && value.IsNil() {
				t.Fatalf("the test: a %s stays nil, so it is not known what the row does to it", value.Type())
			}
		})
	}
	child.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	wanted := r.Desired(foo, nil, r.seenBy(foo))
	child.SetName(wanted.GetName())
	child.SetNamespace(wanted.GetNamespace())
	child.SetOwnerReferences(wanted.GetOwnerReferences())
	setMetadata(child)
	random := rand.New(rand.NewPCG(seed, 0))
	shareKeys(child, sets.List(keysIn(fieldsOf(t, wanted))), random)
	if r.plausible != nil {
		r.plausible(child, random)
	}
	return stored[object](t, child)
}

// nilable fills pointers to a type that fills itself. Without it, randfill leaves them nil.
func nilable[T any](nilChance float64) func(**T, randfill.Continue) {
	return func(value **T, c randfill.Continue) {
		*value = nil
		if c.Float64() >= nilChance {
			*value = new(T)
			c.Fill(*value)
		}
	}
}

// eachValue calls visit for each value in an object, except for its labels and annotations.
func eachValue(value reflect.Value, visit func(reflect.Value)) {
	if value.Type() == reflect.TypeFor[metav1.ObjectMeta]() {
		return
	}
	visit(value)
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			eachValue(value.Elem(), visit)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				eachValue(value.Field(i), visit)
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			eachValue(value.Index(i), visit)
		}
	}
}

// shareKeys adds a key to half of the maps in an object that have any: a row may do
// something to a key that a new child has elsewhere, such as remove it from another map.
func shareKeys(child object, keys []string, random *rand.Rand) {
	eachValue(reflect.ValueOf(child), func(value reflect.Value) {
		if value.Kind() != reflect.Map || value.Len() == 0 || value.Type().Key().Kind() != reflect.String || random.IntN(2) == 0 {
			return
		}
		key := reflect.ValueOf(keys[random.IntN(len(keys))]).Convert(value.Type().Key())
		iterator := value.MapRange()
		iterator.Next()
		value.SetMapIndex(key, iterator.Value())
	})
}

// keysIn returns the keys of the maps in a value, and the names of its fields.
func keysIn(value any) sets.Set[string] {
	keys := sets.New[string]()
	walk(value, nil, func(at path, _ any) {
		if key, ok := at[len(at)-1].(string); ok {
			keys.Insert(key)
		}
	})
	return keys
}

// setMetadata sets what the API server adds to a stored object.
func setMetadata(child object) {
	child.SetUID("uid-child")
	child.SetResourceVersion("20")
	child.SetGeneration(1)
	child.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	child.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}})
}
