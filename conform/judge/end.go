// SPDX-License-Identifier: Apache-2.0

// Package judge says how a controller behaved, from what was recorded of a run: its requests,
// the states of all objects, and how its process ended. It knows no kind, makes no requests
// and waits for nothing.
package judge

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is one state of an object.
type State struct {
	// Resource is the plural name and the group, as in deployments.apps.
	Resource string
	// Version is the resourceVersion, which orders the states of all objects of a store.
	Version uint64
	// Deleted is true if the object is gone since Version. Object is what it was then.
	Deleted bool
	Object  map[string]any
}

// ResourceName returns the name that State.Resource has.
func ResourceName(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

func (s *State) meta() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: s.Object}
}

// UID returns the object's UID.
func (s *State) UID() string { return string(s.meta().GetUID()) }

// Latest returns the last state of each object that exists after a history.
func Latest(history []State) []State {
	latest := map[string]State{}
	for _, s := range history {
		key := s.Resource + "/" + s.meta().GetName()
		if s.Deleted {
			delete(latest, key)
		} else {
			latest[key] = s
		}
	}
	return slices.Collect(maps.Values(latest))
}

// Fields are an object's fields, each with its path and its value as text.
type Fields map[string]string

// End is what exists: the fields of the objects by resource and name. Two objects whose names
// differ only in what was generated have one key.
type End map[string][]Fields

// Options say what is compared.
type Options struct {
	// Namespace is the namespace of the run.
	Namespace string
	// Statuses are the resources whose status the controller writes. Other statuses are
	// the work of others.
	Statuses []string
	// Ignore are expressions for what is not compared: a key of End, a space, a path. One that matches
	// without the path is about the objects, however many there are.
	Ignore []*regexp.Regexp
	// Ready is the type of the condition by which an applied object says that it is ready: Ready, if
	// it is empty.
	Ready string
}

// EndOf normalizes objects: what differs between two equal runs is replaced or left out.
func EndOf(states []State, o Options) End {
	end := End{}
	for _, s := range states {
		key := s.Resource + " " + o.normal(s.meta().GetName())
		end[key] = append(end[key], o.fields(&s))
	}
	isIgnored := func(text string) bool {
		return slices.ContainsFunc(o.Ignore, func(e *regexp.Regexp) bool { return e.MatchString(text) })
	}
	maps.DeleteFunc(end, func(key string, all []Fields) bool {
		for _, fields := range all {
			maps.DeleteFunc(fields, func(path, _ string) bool { return isIgnored(key + " " + path) })
		}
		return isIgnored(key + " ")
	})
	return end
}

// IsDeleting reports whether any object is being deleted.
func (e End) IsDeleting() bool {
	for _, all := range e {
		if slices.ContainsFunc(all, func(f Fields) bool { return f["metadata.deletionTimestamp"] != "" }) {
			return true
		}
	}
	return false
}

// fields returns the fields of an object that are compared.
func (o *Options) fields(s *State) Fields {
	fields := Fields{}
	generation := s.meta().GetGeneration()
	for name, value := range s.Object {
		if name == "status" && !slices.Contains(o.Statuses, s.Resource) {
			continue
		}
		o.flatten(fields, name, value, generation)
	}
	return fields
}

// volatile are the names of fields that differ in each run.
var volatile = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", Touched}

// flatten adds the leaves of a value. Elements of lists are named by their type or name, so
// that their order does not matter.
func (o *Options) flatten(fields Fields, path string, value any, generation int64) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			switch {
			case slices.Contains(volatile, name):
			case name == "observedGeneration":
				fields[path+"."+name] = "current"
				if fmt.Sprint(field) != strconv.FormatInt(generation, 10) {
					fields[path+"."+name] = "stale"
				}
			default:
				o.flatten(fields, path+"."+name, field, generation)
			}
		}
	case []any:
		for i, element := range value {
			o.flatten(fields, fmt.Sprintf("%s[%s]", path, o.nameOf(i, element)), element, generation)
		}
	default:
		fields[path] = o.normal(fmt.Sprint(value))
	}
}

func (o *Options) nameOf(index int, element any) string {
	object, ok := element.(map[string]any)
	if !ok {
		return o.normal(fmt.Sprint(element))
	}
	for _, name := range []string{"type", "name", "key"} {
		if value, ok := object[name].(string); ok {
			return o.normal(value)
		}
	}
	return strconv.Itoa(index)
}

var (
	uuid    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	moment  = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^ ",]*`)
	address = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	// suffix is what generateName appends, and the hash in the name of a ReplicaSet: of
	// letters without vowels, and digits. Or it is a time in minutes or seconds, as in the name of
	// a CronJob's Job. hash is one alone, as in a label.
	suffix = regexp.MustCompile(`-(?:[bcdfghjklmnpqrstvwxz2456789]{5,10}|\d{8,10})\b`)
	hash   = regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{8,10}$`)
)

// normal replaces what was generated.
func (o *Options) normal(text string) string {
	if o.Namespace != "" {
		text = strings.ReplaceAll(text, o.Namespace, "NAMESPACE")
	}
	text = uuid.ReplaceAllString(text, "UID")
	text = moment.ReplaceAllString(text, "TIME")
	text = address.ReplaceAllString(text, "ADDRESS")
	text = hash.ReplaceAllString(text, "HASH")
	return suffix.ReplaceAllString(text, "-*")
}

// Mask has what differs between runs without a fault, and is not compared: a key of End, a
// space, and a path. Without a path, the number of the objects differs.
type Mask map[string]bool

// Varying returns what differs between ends.
func Varying(ends []End) Mask {
	mask := Mask{}
	for _, a := range ends {
		for _, b := range ends {
			for key, all := range a {
				if len(all) != len(b[key]) {
					mask[key+" "] = true
					continue
				}
				for i, pair := range matched(all, b[key]) {
					for _, path := range differing(all[i], pair) {
						mask[key+" "+path] = true
					}
				}
			}
		}
	}
	return mask
}

// differing returns the paths of the fields that differ, in order.
func differing(a, b Fields) []string {
	var paths []string
	for path := range a {
		if value, ok := b[path]; !ok || value != a[path] {
			paths = append(paths, path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// matched orders the objects b so that each is at the place of the one of a that it is like most.
// Both have the same number.
func matched(a, b []Fields) []Fields {
	all := make([]Fields, len(a))
	left := slices.Clone(b)
	for range a {
		place, best, least := 0, 0, -1
		for i := range a {
			for j := range left {
				if n := len(differing(a[i], left[j])); all[i] == nil && (least < 0 || n < least) {
					place, best, least = i, j, n
				}
			}
		}
		all[place] = left[best]
		left = slices.Delete(left, best, best+1)
	}
	return all
}

// without returns objects without the fields that vary.
func (m Mask) without(key string, all []Fields) []Fields {
	var rest []Fields
	for _, fields := range all {
		fields = maps.Clone(fields)
		maps.DeleteFunc(fields, func(path, _ string) bool { return m[key+" "+path] })
		rest = append(rest, fields)
	}
	return rest
}

// Diff says how an end differs from the wanted one. It is empty if they are equal.
func (m Mask) Diff(want, got End) []string {
	var diff []string
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if m[key+" "] {
			continue
		}
		if w, g := len(want[key]), len(got[key]); w != g {
			diff = append(diff, fmt.Sprintf("%s: there are %d, want %d", key, g, w))
			continue
		}
		wanted := m.without(key, want[key])
		for i, fields := range matched(wanted, m.without(key, got[key])) {
			for _, path := range differing(wanted[i], fields) {
				diff = append(diff, fmt.Sprintf("%s: %s is %q, want %q", key, path, fields[path], wanted[i][path]))
			}
		}
	}
	return diff
}
