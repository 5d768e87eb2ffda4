/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package faults

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// report gathers the results of a run, row by row.
type report struct {
	mu   sync.Mutex
	rows []*row
}

type row struct {
	scenario scenario
	results  map[string]*result // by the subject's name
}

type result struct {
	tried   int
	failed  int
	reason  string // of the first failure
	skipped string // why it was not tried
}

func newReport() *report { return &report{} }

// find returns a row's result for a subject. The lock is held.
func (r *report) find(sc *scenario, s *subject) *result {
	for _, known := range r.rows {
		if known.scenario.row == sc.row && known.scenario.title == sc.title {
			if known.results[s.name] == nil {
				known.results[s.name] = &result{}
			}
			return known.results[s.name]
		}
	}
	first := &result{}
	r.rows = append(r.rows, &row{scenario: *sc, results: map[string]*result{s.name: first}})
	return first
}

func (r *report) note(sc *scenario, s *subject, name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.find(sc, s)
	found.tried++
	if err != nil {
		found.failed++
		if found.reason == "" {
			_, which, _ := strings.Cut(name, sc.row+"/")
			found.reason = which + ": " + err.Error()
		}
	}
}

func (r *report) skip(sc *scenario, s *subject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.find(sc, s).skipped = sc.oursOnly
}

// summary is the run in a line.
func (r *report) summary() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	tried, failed := 0, 0
	for _, one := range r.rows {
		if result := one.results[run.ours.name]; result != nil {
			tried, failed = tried+result.tried, failed+result.failed
		}
	}
	return fmt.Sprintf("%d perturbations of %d rows, %d failed (seed %d)", tried, len(r.rows), failed, run.seed)
}

func (r *report) write(path string) error {
	return os.WriteFile(path, []byte(""), 0o644)
}
