// SPDX-License-Identifier: Apache-2.0

// What a controller remembers between syncs, and the check that all of it is known: a field that
// is renamed or added without a word would make different states look the same.

package explore

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// State describes the structs that hold the state of a controller. It maps each type, such as
// "queue.Backoff", to the names of all its fields but mutexes, separated by spaces. A colon behind
// a name says how the field counts, unless it counts by its value:
//
//	:not      not at all: no sync changes it, the exploration has its own, or it decides only what is logged
//	:until    by the time that is left until then
//	:12       an int that is reduced to 12 if it is greater
//	:pause=n  a time that is followed by a pause, whose length depends on the field n: see pauseAfter
//
// What is remembered of each Foo is in maps by its key, and what is remembered for all of them in maps by a
// struct of this project, to both of which the other fields lead.
type State map[string]string

// description says how the fields of each type count, by their names.
type description map[reflect.Type]map[string]string

// remembered are the maps in which a controller remembers something of each Foo, or for all of them.
type remembered struct {
	description

	maps, shared []reflect.Value
}

// finder finds these maps, and compares the types of a controller with a State.
type finder struct {
	remembered
	State

	used    sets.Set[string] // names of types
	checked sets.Set[reflect.Type]
	wrong   []error
}

// findRemembered finds the maps. Its error names each field that is not described, that does not
// exist, or that can't be saved.
func findRemembered(subject Subject) (*remembered, error) {
	f := &finder{remembered{description: description{}}, subject.State, sets.New[string](), sets.New[reflect.Type](), nil}
	if subject.Controller != nil {
		f.find("the controller", reflect.ValueOf(subject.Controller))
	}
	for _, name := range slices.Sorted(maps.Keys(f.State)) {
		if !f.used.Has(name) {
			f.breaks("%s is described, and no state of the controller has the type", name)
		}
	}
	return &f.remembered, errors.Join(f.wrong...)
}

func (f *finder) breaks(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Errorf(format, args...))
}

func (f *finder) find(at string, v reflect.Value) {
	switch t := v.Type(); {
	case t.Kind() == reflect.Map && t.Key() == keyType:
		f.maps = append(f.maps, v)
		f.check(at, t.Elem())
	case t.Kind() == reflect.Map && isOwn(t.Key()):
		f.shared = append(f.shared, v)
		f.check(at, t)
	case t.Kind() == reflect.Pointer && !v.IsNil():
		f.find(at, v.Elem())
	case t.Kind() == reflect.Slice && v.Len() > 0:
		for i := range v.Len() {
			f.find(at, v.Index(i))
		}
	case t.Kind() == reflect.Struct && isOwn(t):
		for _, field := range f.counted(t) {
			f.find(t.String()+"."+field.Name, readable(v.FieldByIndex(field.Index)))
		}
	default:
		f.breaks("%s is a %s, and only maps by key are saved: use one, or describe it as \":not\" if no sync changes it", at, t)
	}
}

// check checks that values of a type can be saved, as a part of a map by key.
func (f *finder) check(at string, t reflect.Type) {
	switch kind := t.Kind(); {
	case kind == reflect.Map:
		f.check(at, t.Key())
		f.check(at, t.Elem())
	case kind == reflect.Pointer, kind == reflect.Slice, kind == reflect.Array:
		f.check(at, t.Elem())
	case t == keyType:
	case kind == reflect.Struct && isOwn(t):
		if !f.checked.Has(t) {
			f.checked.Insert(t)
			for _, field := range f.counted(t) {
				f.check(t.String()+"."+field.Name, field.Type)
			}
		}
	case isShared(t), kind >= reflect.Bool && kind < reflect.Uintptr, kind == reflect.String, kind == reflect.Interface:
	default:
		f.breaks("%s is a %s, which can't be saved", at, t)
	}
}

// counted returns the fields of a type that count by their value.
func (f *finder) counted(t reflect.Type) (fields []reflect.StructField) {
	if f.description[t] == nil {
		f.describe(t)
	}
	for field := range t.Fields() {
		if f.description[t][field.Name] == "" {
			fields = append(fields, field)
		}
	}
	return fields
}

// describe compares a type with its description.
func (f *finder) describe(t reflect.Type) {
	name, _, _ := strings.Cut(t.String(), "[") // without type arguments
	described := map[string]string{}
	for word := range strings.FieldsSeq(f.State[name]) {
		field, how, _ := strings.Cut(word, ":")
		if of, exists := t.FieldByName(field); !exists || len(of.Index) > 1 {
			f.breaks("%s.%s is described, and the type has no such field", name, field)
		} else if !mayCount(how, of.Type, t) {
			f.breaks("%s.%s is a %s, which can't count as %q", name, field, of.Type, how)
		}
		described[field] = how
	}
	for field := range t.Fields() {
		if _, known := described[field.Name]; known {
			continue
		}
		described[field.Name] = "not"
		if field.Type != mutexType {
			f.breaks("%s.%s is not described: see State in test/simulation/explore", name, field.Name)
		}
	}
	f.description[t] = described
	f.used.Insert(name)
}

// mayCount reports whether the word of a State fits a field of a type.
func mayCount(how string, field, in reflect.Type) bool {
	if repairs, isPause := strings.CutPrefix(how, "pause="); isPause {
		of, exists := in.FieldByName(repairs)
		return exists && of.Type.Kind() == reflect.Int && field == timeType
	}
	most, err := strconv.Atoi(how)
	return how == "" || how == "not" || how == "until" && field == timeType || err == nil && most > 0 && field.Kind() == reflect.Int
}

// modulePath is the path of this module.
var modulePath = strings.TrimSuffix(reflect.TypeFor[memo]().PkgPath(), "/test/simulation/explore")

// isOwn reports whether a type is of this project's code, which may remember something in it.
func isOwn(t reflect.Type) bool {
	return t.PkgPath() == "main" || strings.HasPrefix(t.PkgPath()+"/", modulePath+"/") && !isShared(t)
}

// isShared reports whether a type is one of an API, or a time: no one changes what a pointer to it refers to.
func isShared(t reflect.Type) bool {
	return t == timeType || strings.HasPrefix(t.PkgPath(), modulePath+"/pkg/apis/") || strings.HasPrefix(t.PkgPath(), "k8s.io/api")
}
