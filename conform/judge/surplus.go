// SPDX-License-Identifier: Apache-2.0

// Whether a controller made more than it needs, even if it removed that again.

package judge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Peaks are the most objects of each key of End that one owner had at once. Objects that are being
// deleted don't count.
type Peaks map[string]int

// peaks returns the peaks of each step.
func peaks(run *Run) []Peaks {
	type family struct {
		key   string
		owner types.UID
	}
	var all []Peaks
	live := map[family]map[string]bool{}
	for i, step := range run.Steps {
		until := len(run.History)
		if i+1 < len(run.Steps) {
			until = run.Steps[i+1].From
		}
		most := Peaks{}
		note := func(f family) { most[f.key] = max(most[f.key], len(live[f])) }
		for f := range live {
			note(f)
		}
		for _, s := range run.History[step.From:until] {
			f := family{key: s.Resource + " " + run.Options.normal(s.meta().GetName())}
			if owner := metav1.GetControllerOfNoCopy(s.meta()); owner != nil {
				f.owner = owner.UID
			}
			if live[f] == nil {
				live[f] = map[string]bool{}
			}
			for other := range live { // an orphan, or one that was adopted
				delete(live[other], s.UID())
			}
			if !s.Deleted && s.meta().GetDeletionTimestamp() == nil {
				live[f][s.UID()] = true
			}
			note(f)
		}
		all = append(all, most)
	}
	return all
}

const noSurplus = "no surplus"

// canHaveSurplus reports whether a case leaves the answers to the controller's writes alone: after a lost
// answer, nobody knows whether an object with a generated name was created.
func canHaveSurplus(c Case) bool {
	return c.Level == Quiet || c.Level == CrashSafe || c.Level == CacheSafe
}

// surplus says of which objects there were more at once in a step than in any run without a fault.
func surplus(record *Record, run *Run) []string {
	if !canHaveSurplus(run.Case) {
		return nil
	}
	var texts []string
	for i, most := range peaks(run) {
		for _, key := range slices.Sorted(maps.Keys(most)) {
			if record.creates(key) && most[key] > record.Peaks[i][key] && !record.Mask(run.Case, i)[key+" "] {
				texts = append(texts, fmt.Sprintf("step %s: there were %d at once of %s, and without a fault at most %d", run.Steps[i].Name, most[key], key, record.Peaks[i][key]))
			}
		}
	}
	return texts
}

// highest returns the highest peaks of runs, by step.
func highest(runs []*Run) []Peaks {
	all := peaks(runs[0])
	for _, run := range runs[1:] {
		for i, most := range peaks(run) {
			for key, number := range most {
				all[i][key] = max(all[i][key], number)
			}
		}
	}
	return all
}

// creates reports whether the controller may create objects of a key, by a create or an apply.
func (r *Record) creates(key string) bool {
	resource, _, _ := strings.Cut(key, " ")
	return slices.Contains(r.Requests, Request{"create", resource}) || slices.Contains(r.Requests, Request{"patch", resource})
}

// CreatesSomething reports whether the controller creates or applies any object.
func (r *Record) CreatesSomething() bool {
	return slices.ContainsFunc(r.Writes, func(w Write) bool {
		return !strings.Contains(w.Resource, "/") && (w.Method == http.MethodPost || w.Method == http.MethodPatch)
	})
}
