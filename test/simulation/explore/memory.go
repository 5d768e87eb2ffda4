// SPDX-License-Identifier: Apache-2.0

// What a controller remembers between syncs: found, saved and restored by reflection, so
// that the controller needs no code for it.

package explore

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/client-go/tools/cache"
)

// failuresCaps bound how many failures of a key count for its back-off, by the fields that
// count them. The controller reads a count for one purpose: how long to wait. Without a
// bound a key that loses races while an event is late would have a new state with each. After
// five refusals the back-off is longer than it takes until a Foo is stalled.
var failuresCaps = map[string]int64{"races": 2, "outages": 2, "refusals": 6}

// remembered are the maps in which a controller remembers something of each Foo.
type remembered struct {
	maps []reflect.Value
	// references are what the controller itself refers to without owning it, such as a
	// cache, by type. What another controller remembered refers to those of that one.
	references map[reflect.Type]reflect.Value
}

// memo is all that a controller remembers of one Foo. It never changes.
type memo struct {
	values []reflect.Value
	*fingerprint
}

// modulePath is the path of this module.
var modulePath = strings.TrimSuffix(reflect.TypeFor[memo]().PkgPath(), "/test/simulation/explore")

var keyType = reflect.TypeFor[cache.ObjectName]()

// findRemembered finds the maps from keys of Foos that can be reached from a controller
// through the code of this project and the rate limiters.
func findRemembered(controller any) *remembered {
	r := &remembered{references: map[reflect.Type]reflect.Value{}}
	seen := map[unsafe.Pointer]bool{}
	var find func(v reflect.Value)
	find = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Map:
			if v.Type().Key() == keyType {
				r.maps = append(r.maps, v)
			}
		case reflect.Interface:
			if v.Elem().Kind() == reflect.Pointer { // a struct in an interface never changes
				r.references[v.Elem().Type()] = v.Elem()
				find(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				find(readable(v.Index(i)))
			}
		case reflect.Pointer:
			if v.IsNil() || seen[v.UnsafePointer()] || !mayRemember(v.Type().Elem()) {
				return
			}
			seen[v.UnsafePointer()] = true
			find(v.Elem())
		case reflect.Struct:
			for _, field := range v.Fields() {
				find(readable(field))
			}
		default:
		}
	}
	find(reflect.ValueOf(controller))
	return r
}

// mayRemember reports whether to look for memory in a type. The queue is not memory: the
// explorer has one of its own.
func mayRemember(t reflect.Type) bool {
	path := t.PkgPath()
	if strings.HasSuffix(path, "/queue") && t.Name() == "Queue" {
		return false
	}
	return path == "main" || path == modulePath || strings.HasPrefix(path, modulePath+"/internal/") ||
		path == "k8s.io/client-go/util/workqueue" && strings.Contains(t.Name(), "RateLimiter")
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
	m, e := &memo{values: make([]reflect.Value, len(r.maps))}, &encoder{}
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

// clone returns a copy that shares nothing that this project's code changes.
func (r *remembered) clone(v reflect.Value) reflect.Value {
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	r.unshare(copied)
	return copied
}

// unshare puts a copy in the place of each pointer, map and slice in a value. Objects of the API
// stay, because nobody changes those of a cache. It bounds the counts of failures.
func (r *remembered) unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && mayRemember(v.Type().Elem()) {
			copied := r.clone(v.Elem())
			v.Set(copied.Addr())
		}
	case reflect.Map:
		if v.IsNil() {
			return
		}
		copied := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			copied.SetMapIndex(r.own(entries.Key()), r.clone(entries.Value()))
		}
		v.Set(copied)
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
		for i := range v.Len() {
			r.unshare(v.Index(i))
		}
	case reflect.Struct:
		for declared, field := range v.Fields() {
			field = readable(field)
			r.unshare(field)
			if bound, isCount := failuresCaps[declared.Name]; isCount {
				field.SetInt(min(field.Int(), bound))
			}
		}
	default:
	}
}

// own returns the controller's own one of what a key refers to.
func (r *remembered) own(key reflect.Value) reflect.Value {
	if key.Kind() != reflect.Interface {
		return key
	}
	own, known := r.references[key.Elem().Type()]
	if !known {
		panic(fmt.Sprintf("a controller remembers something of a %s, which it does not refer to", key.Elem().Type()))
	}
	return own
}
