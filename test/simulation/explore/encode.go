// SPDX-License-Identifier: Apache-2.0

// The encoding of values of any type, and what a controller remembers between syncs: found, saved
// and restored by reflection, as state.go describes it, so that the controller needs no code for it.

package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// encoder writes values so that two are equal if and only if their encodings are.
type encoder struct {
	out    []byte
	tokens []token
	// description is that of the types of a controller's state. Fields of others count by their values.
	description description
}

func (e *encoder) fingerprint() *fingerprint {
	sum := sha256.Sum256(e.out)
	return &fingerprint{digest(sum[:16]), slices.Clip(e.tokens)}
}

func (e *encoder) number(n int64) { e.out = binary.AppendVarint(e.out, n) }
func (e *encoder) text(s string)  { e.number(int64(len(s))); e.out = append(e.out, s...) }
func (e *encoder) token(k tokenKind, v int64) {
	e.out = append(e.out, 'T', byte(k))
	e.tokens = append(e.tokens, token{k, v})
}

var (
	keyType      = reflect.TypeFor[cache.ObjectName]()
	mutexType    = reflect.TypeFor[sync.Mutex]()
	uidType      = reflect.TypeFor[types.UID]()
	timeType     = reflect.TypeFor[time.Time]()
	metaTimeType = reflect.TypeFor[metav1.Time]()
	errorType    = reflect.TypeFor[error]()
)

// value encodes what a value refers to, too.
func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
		e.out = append(e.out, 0)
	case reflect.String:
		e.string(v)
	case reflect.Bool:
		e.flag(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.integer(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.number(int64(v.Uint()))
	case reflect.Float32, reflect.Float64:
		e.number(int64(math.Float64bits(v.Float())))
	case reflect.Slice, reflect.Array:
		e.number(int64(v.Len()))
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Map:
		e.sorted(v)
	case reflect.Pointer, reflect.Interface:
		e.pointed(v)
	case reflect.Struct:
		e.fields(v)
	default:
		panic(fmt.Sprintf("the state of a controller has a %s, which can't be compared", v.Type()))
	}
}

// string encodes a text. Versions and UIDs of the explored API server are recognized by
// their form, wherever they are.
func (e *encoder) string(v reflect.Value) {
	text := v.String()
	version, isVersion := parseVersion(text)
	switch {
	case v.Type() == uidType && strings.HasPrefix(text, uidPrefix): // others are those of a real API server
		n, err := strconv.ParseInt(text[len(uidPrefix):], 10, 64)
		if err != nil {
			panic(fmt.Sprintf("%q is no UID of this API server", text))
		}
		e.token(uidToken, n)
	case isVersion:
		e.token(versionToken, version)
	default:
		e.text(text)
	}
}

func (e *encoder) integer(n int64) {
	if n >= epoch.Unix() {
		e.token(dateToken, n) // seconds since 1970, of a transition
	} else {
		e.number(n)
	}
}

// sorted encodes a map in the order of its encoded keys.
func (e *encoder) sorted(v reflect.Value) {
	values := make(map[string]reflect.Value, v.Len())
	for key, value := range v.Seq2() {
		k := encoder{description: e.description}
		k.value(key)
		values[string(k.out)] = value
	}
	e.number(int64(len(values)))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		e.text(key)
		e.value(values[key])
	}
}

func (e *encoder) pointed(v reflect.Value) {
	if v.IsNil() {
		e.out = append(e.out, 0)
		return
	}
	e.out = append(e.out, 1)
	switch {
	case v.Type().Implements(errorType):
		e.failure(v.Interface().(error)) //nolint:forcetypeassert // it was asked
	case v.Kind() == reflect.Interface:
		e.text(v.Elem().Type().String())
		e.value(v.Elem())
	default:
		e.value(v.Elem())
	}
}

// failure encodes an error by its types and its text: what the controller asks of one.
func (e *encoder) failure(err error) {
	e.text(err.Error())
	for err != nil {
		e.text(reflect.TypeOf(err).String())
		switch wrapped := err.(type) { //nolint:errorlint // the chain is walked here
		case interface{ Unwrap() error }:
			err = wrapped.Unwrap()
		case interface{ Unwrap() []error }:
			for _, part := range wrapped.Unwrap() {
				e.failure(part)
			}
			return
		default:
			return
		}
	}
}

func (e *encoder) fields(v reflect.Value) {
	switch v.Type() {
	case timeType:
		e.date(sinceToken, timeOf(v))
		return
	case metaTimeType:
		e.date(dateToken, timeOf(v.Field(0)))
		return
	}
	if !v.CanAddr() {
		copied := reflect.New(v.Type()).Elem()
		copied.Set(v)
		v = copied
	}
	counts := e.description[v.Type()]
	for declared, field := range v.Fields() {
		e.field(readable(field), counts[declared.Name], v)
	}
}

// field encodes a field of a struct, as State says.
func (e *encoder) field(field reflect.Value, how string, in reflect.Value) {
	repairs, isPause := strings.CutPrefix(how, "pause=")
	switch {
	case how == "not":
		return
	case how == "until":
		// None is one that has passed: the difference to year 1 is no number.
		e.token(deadlineToken, max(0, timeOf(field).Sub(epoch).Nanoseconds()))
		return
	case isPause:
		// The wait counts to the second, even if the key is in the queue for another reason, so that a
		// state which waits does not look like the one in which the wait ends.
		if pause := pauseAfter(in.FieldByName(repairs).Int()); pause > 0 {
			e.token(deadlineToken, timeOf(field).Add(pause).Sub(epoch).Nanoseconds())
		}
	}
	e.value(field)
}

// date encodes a time as a token, or that it is none.
func (e *encoder) date(kind tokenKind, at time.Time) {
	switch {
	case at.IsZero():
		e.out = append(e.out, 0)
	case kind == dateToken:
		e.token(kind, at.Unix())
	default:
		e.token(kind, at.Sub(epoch).Nanoseconds())
	}
}

func timeOf(v reflect.Value) time.Time {
	return v.Interface().(time.Time) //nolint:forcetypeassert // it is one
}

// memo is all that a controller remembers of one Foo, or for all of them. It never changes.
type memo struct {
	values []reflect.Value
	*fingerprint
}

// readable returns a value of a field that is not exported as one that may be read and set.
func readable(v reflect.Value) reflect.Value {
	if v.CanInterface() {
		return v
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// save returns what is remembered of a Foo.
func (r *remembered) save(key cache.ObjectName) *memo {
	m, e := &memo{values: make([]reflect.Value, len(r.maps))}, &encoder{description: r.description}
	for i, entries := range r.maps {
		found := entries.MapIndex(reflect.ValueOf(key))
		e.flag(found.IsValid())
		if found.IsValid() {
			m.values[i] = r.clone(found)
			e.value(m.values[i])
		}
	}
	m.fingerprint = e.fingerprint()
	return m
}

// restore makes the controller remember of a Foo what it did before.
func (r *remembered) restore(key cache.ObjectName, m *memo) {
	for i, entries := range r.maps {
		if entries.IsNil() {
			entries.Set(reflect.MakeMap(entries.Type()))
		}
		var value reflect.Value // of an entry that is deleted
		if m != nil && m.values[i].IsValid() {
			value = r.clone(m.values[i])
		}
		entries.SetMapIndex(reflect.ValueOf(key), value)
	}
}

// saveShared returns what is remembered for all Foos, or nil if nothing is.
func (r *remembered) saveShared() *memo {
	m, e, isEmpty := &memo{}, &encoder{description: r.description}, true
	for _, entries := range r.shared {
		m.values = append(m.values, r.clone(entries))
		e.value(m.values[len(m.values)-1])
		isEmpty = isEmpty && entries.Len() == 0
	}
	if isEmpty {
		return nil
	}
	m.fingerprint = e.fingerprint()
	return m
}

// restoreShared makes the controller remember for all Foos what it did before.
func (r *remembered) restoreShared(m *memo) {
	for i, entries := range r.shared {
		if m != nil {
			entries.Set(r.clone(m.values[i]))
		} else if entries.Len() > 0 {
			entries.SetZero()
		}
	}
}

// clone returns a copy that shares nothing that this project's code changes.
func (d description) clone(v reflect.Value) reflect.Value {
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	d.unshare(copied)
	return copied
}

// unshare puts a copy in the place of each pointer, map and slice in a value. Objects of an API
// stay, because no one changes those of a cache. It bounds numbers as they are described.
func (d description) unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !isShared(v.Type().Elem()) {
			copied := d.clone(v.Elem())
			v.Set(copied.Addr())
		}
	case reflect.Interface:
		if held := v.Elem(); held.Kind() == reflect.Pointer && isOwn(held.Type().Elem()) {
			v.Set(d.clone(held))
		}
	case reflect.Map:
		if v.IsNil() {
			return
		}
		copied := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			copied.SetMapIndex(entries.Key(), d.clone(entries.Value()))
		}
		v.Set(copied)
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
		for i := range v.Len() {
			d.unshare(v.Index(i))
		}
	case reflect.Struct:
		d.unshareFields(v)
	default:
	}
}

func (d description) unshareFields(v reflect.Value) {
	if isShared(v.Type()) {
		return
	}
	counts := d[v.Type()]
	for declared, field := range v.Fields() {
		field = readable(field)
		d.unshare(field)
		if most, err := strconv.ParseInt(counts[declared.Name], 10, 64); err == nil {
			field.SetInt(min(field.Int(), most))
		}
	}
}
