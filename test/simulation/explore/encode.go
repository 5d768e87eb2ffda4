// SPDX-License-Identifier: Apache-2.0

// The encoding of values of any type, by reflection.

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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// encoder writes values so that two are equal if and only if their encodings are.
type encoder struct {
	out    []byte
	tokens []token
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
		var k encoder
		if key.Kind() == reflect.Interface { // a cache, of which there is one for each type
			k.text(key.Elem().Type().String())
		} else {
			k.value(key)
		}
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
	if count, last := v.FieldByName("count"), v.FieldByName("last"); count.IsValid() && last.IsValid() {
		// Until when a series of repairs has to wait for the next. The wait counts to the second, even if
		// the key is in the queue for another reason, so that a state which waits does not look like the
		// one in which the wait ends.
		if pause := pauseAfter(count.Int()); pause > 0 {
			e.token(deadlineToken, timeOf(readable(last)).Add(pause).Sub(epoch).Nanoseconds())
		}
	}
	for declared, field := range v.Fields() {
		switch field = readable(field); {
		case declared.Name == "reported": // when a failure was logged decides nothing but what is logged
		case declared.Name == "until" && declared.Type == timeType:
			// None is one that has passed: the difference to year 1 is no number.
			e.token(deadlineToken, max(0, timeOf(field).Sub(epoch).Nanoseconds()))
		default:
			e.value(field)
		}
	}
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
