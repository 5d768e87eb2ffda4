// SPDX-License-Identifier: Apache-2.0

// The rows of the matrix, and how they are run: those in one control plane in parallel, those
// that break a control plane one after the other. Their results are shown in docs/faults.md.
// At the end, tests of the tests.

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"example.com/sample-controller/test/mutants"
)

// scenario is a row of the matrix: one kind of fault, and the cases that try it.
type scenario struct {
	// row is the row's name in docs/faults.md: a letter and a number.
	row   string
	title string
	// quick is how many of the cases FAULTS=quick runs.
	quick int
	cases []trialCase
	// exempt is true if the controllers have the account to which the admission policy does not
	// apply. Where the policy would be a second line of defense, these rows test the first.
	exempt bool
	// isWorkload is true for a workload without a fault.
	isWorkload bool
	// breaksPlane is true if the row needs its own control plane.
	breaksPlane bool
	// oursOnly says why the row can be run with our controller only. It is empty if the
	// row can be run with both.
	oursOnly string
	// why explains in docs/faults.md why upstream's controller fails the row. The error
	// of the run is shown beside it.
	why string
	// ours and upstream are the results.
	ours, upstream result
}

// trialCase is one way to try a fault.
type trialCase struct {
	name string
	run  func(tr *trial)
	// needs is the workload that the case needs, and write the write of it that fails, if
	// any. A case is left out for a subject that fails the workload even without a fault, or
	// makes fewer writes.
	needs string
	write int
}

// one is the only case of a row.
func one(name string, run func(*trial)) []trialCase { return []trialCase{{name: name, run: run}} }

// failsWithoutFault is the reason to skip a row whose workload a controller fails even
// without a fault.
const failsWithoutFault = "not run (fails without a fault)"

// besideOthers lets a test run at the same time as the others, unless all rows are run: some
// of those measure how long others wait.
func besideOthers(t *testing.T) {
	t.Helper()
	if !run.all {
		t.Parallel()
	}
}

// TestWorkloads runs the workloads without a fault, and then the rows that need to know how
// that went. The garbage collector takes up to a minute to learn of Foos.
func TestWorkloads(t *testing.T) {
	besideOthers(t)
	for _, s := range run.subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Run("no fault", func(t *testing.T) {
				tryAll(t, s, func(sc *scenario) bool { return sc.isWorkload })
			})
			tryAll(t, s, (*scenario).needsWorkload)
		})
	}
}

// TestFaults runs the other rows that leave the control plane alone.
func TestFaults(t *testing.T) {
	besideOthers(t)
	for _, s := range run.subjects {
		t.Run(s.name, func(t *testing.T) {
			tryAll(t, s, func(sc *scenario) bool { return !sc.breaksPlane && !sc.isWorkload && !sc.needsWorkload() })
		})
	}
}

func (sc *scenario) needsWorkload() bool {
	return slices.ContainsFunc(sc.cases, func(c trialCase) bool { return c.needs != "" })
}

// tryAll runs the rows that are meant.
func tryAll(t *testing.T, s *subject, meant func(*scenario) bool) {
	t.Helper()
	for _, sc := range run.rows {
		if meant(sc) {
			t.Run(sc.row, func(t *testing.T) {
				t.Parallel()
				sc.try(t, s)
			})
		}
	}
}

// TestControlPlane runs the rows that break the control plane, one after the other.
func TestControlPlane(t *testing.T) {
	besideOthers(t)
	for _, s := range run.subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := newControlPlane(t)
			for _, sc := range run.rows {
				for _, c := range sc.cases {
					if !sc.breaksPlane {
						continue
					}
					t.Run(sc.row+"/"+c.name, func(t *testing.T) {
						sc.skipFor(t, s)
						if err := p.AwaitReady(t.Context()); err != nil {
							t.Fatal(err) // left behind by the row before
						}
						tr := sc.newTrial(t, p.testCluster, s)
						tr.plane = p
						sc.tryCase(t, tr, c.run)
					})
				}
			}
		})
	}
}

// skipFor skips a row that can't be run with a subject, or that only FAULTS=all runs.
func (sc *scenario) skipFor(t *testing.T, s *subject) {
	t.Helper()
	if sc.oursOnly != "" && s != run.ours {
		sc.noteSkipped(s, sc.oursOnly)
		t.Skip(sc.oursOnly)
	}
	if !run.all && sc.quick == 0 {
		t.Skip("only with FAULTS=all")
	}
}

// try runs a row's cases, or with FAULTS=quick a selection of them.
func (sc *scenario) try(t *testing.T, s *subject) {
	sc.skipFor(t, s)
	cases := slices.DeleteFunc(slices.Clone(sc.cases), func(c trialCase) bool {
		return c.needs != "" && !s.can(c.needs, c.write)
	})
	if len(cases) == 0 {
		sc.noteSkipped(s, failsWithoutFault)
		t.Skip(failsWithoutFault)
	}
	if !run.all && len(cases) > sc.quick {
		// The same selection for the same seed, whatever else is run.
		random := rand.New(rand.NewPCG(run.seed, uint64(len(sc.title))))
		random.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
		cases = cases[:sc.quick]
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sc.tryCase(t, sc.newTrial(t, run.cluster, s), c.run)
		})
	}
}

// tryCase runs a trial. A failure of our controller fails the test; a failure of
// upstream's is only recorded.
func (sc *scenario) tryCase(t *testing.T, tr *trial, acts func(*trial)) {
	err := tr.run(acts)
	if errors.Is(err, errNotReached) {
		t.Skip(err)
	}
	sc.note(tr.subject, err)
	if err == nil {
		return
	}
	report := t.Errorf
	if tr.subject.isUpstream {
		report = t.Logf
	}
	report("%s, %s: %v\nTo repeat it: make test-faults FAULTS=all FAULTS_SEED=%d GO_TEST_FLAGS='-run=^%s$$'\n%s",
		sc.row, sc.title, err, run.seed, t.Name(), tr.diagnostics())
}

// result is what a row has found about a subject, or all rows have.
type result struct {
	Tried, Failed int
	Reason        string // of the first failure
	skipped       string // why it was not run, if it was not
}

// note records the result of a trial.
func (sc *scenario) note(s *subject, err error) {
	run.mu.Lock()
	defer run.mu.Unlock()
	found := sc.resultOf(s)
	found.Tried++
	if err != nil {
		found.Failed++
		line, _, _ := strings.Cut(err.Error(), "\n")
		if reason := strings.TrimRight(varying.ReplaceAllString(line, ""), ". "); found.Reason == "" || reason < found.Reason {
			found.Reason = reason // the same one, in whatever order the trials end
		}
	}
}

// noteSkipped records why a row can't be run with a subject.
func (sc *scenario) noteSkipped(s *subject, why string) {
	run.mu.Lock()
	defer run.mu.Unlock()
	sc.resultOf(s).skipped = why
}

func (sc *scenario) resultOf(s *subject) *result {
	if s.isUpstream {
		return &sc.upstream
	}
	return &sc.ours
}

// varying matches the parts of an error that differ from run to run.
var varying = regexp.MustCompile(
	`waiting at most [0-9.a-z]+ until the state is right and nothing is written: |` +
		`context deadline exceeded: |foo-e2e-[a-z0-9]+`)

// reportFaults prints what the rows have found, and writes the page if FAULTS_REPORT names it.
func reportFaults() error {
	found := newPage()
	fmt.Printf("faults: %d trials in %d rows, %d rows failed (seed %d)\n",
		found.Total, found.Ours.Tried, found.Ours.Failed, run.seed)
	if output := os.Getenv("FAULTS_REPORT"); output != "" {
		return found.write(output)
	}
	return nil
}

// page is the data of the template.
type page struct {
	Upstream, Kubernetes string
	Total                int
	Seed                 uint64
	Ours, Theirs         result // Tried and Failed count rows
	Rows                 []pageRow
}

// add counts a row.
func (r *result) add(row result) {
	r.Tried += min(row.Tried, 1)
	r.Failed += min(row.Failed, 1)
}

type pageRow struct {
	Name, Title, Why string
	Ours, Upstream   result
}

// newPage returns the results, without the names of versions.
func newPage() page {
	shown := page{Seed: run.seed}
	for _, sc := range run.rows {
		if sc.ours == (result{}) && sc.upstream == (result{}) {
			continue // excluded by -run
		}
		shown.Total += sc.ours.Tried
		shown.Ours.add(sc.ours)
		shown.Theirs.add(sc.upstream)
		shown.Rows = append(shown.Rows, pageRow{sc.row, sc.title, sc.why, sc.ours, sc.upstream})
	}
	return shown
}

// write writes the page.
func (p page) write(path string) error {
	version, err := run.cluster.kube.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	layout, err := template.ParseFiles("testdata/faults.md.tmpl")
	if err != nil {
		return err
	}
	p.Upstream, p.Kubernetes = run.upstream.version, version.GitVersion
	var text strings.Builder
	if err := layout.Execute(&text, p); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// String returns a result as the text of a cell of the matrix.
func (r result) String() string {
	switch {
	case r.skipped != "":
		return r.skipped
	case r.Tried == 0:
		return "not run"
	case r.Failed > 0:
		return fmt.Sprintf("**fails** %d/%d", r.Failed, r.Tried)
	}
	return fmt.Sprint(r.Tried)
}

// defectTimeout bounds each wait for a state that the defect may keep from ever coming.
// The test also compares the reason of the failure, so a slow machine is not mistaken for
// the defect.
const defectTimeout = 40 * time.Second

// TestTheHarnessCanFail runs a case of a row with a mutant, and expects it to fail for the
// reason that the mistake gives.
func TestTheHarnessCanFail(t *testing.T) {
	besideOthers(t)
	const overwritten = "Deployment a, which it must not change, was changed"
	for _, defect := range []struct {
		mutant, row, name string
		// reason is a part of the error that the row must return.
		reason string
	}{
		{"an update without a precondition", "D1", "takes the owner away while the write is under way", overwritten},
		{"an owner is known by its name, not its UID", "B3", "of the same name", overwritten},
		{"children of earlier names are never obsolete", "C1", "rename", "it has 2 Deployments"},
		{"the Lease is released while a write is under way", "E2", "SIGTERM during a write",
			"the Lease was released during a write"},
		{"the process ends without its Events", "A4", "an Event under way", "it ended while an Event was being written"},
		{"the status is written in each sync", "rest", "some resyncs", "it writes at rest"},
		{"a failed write counts as done", "D2", "scale, write 1, 500", "reports Ready for generation 2"},
	} {
		t.Run(defect.mutant, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			overlay, err := mutants.Named(defect.mutant).Overlay(moduleRoot, folder)
			if err != nil {
				t.Fatal(err)
			}
			broken, err := buildOurs(t.Context(), filepath.Join(folder, "controller"), "-overlay="+overlay)
			if err != nil {
				t.Fatal(err)
			}
			sc, acts := caseNamed(t, defect.row, defect.name)
			tr := sc.newTrial(t, run.cluster, broken)
			tr.timeout = defectTimeout
			err = tr.run(acts)
			if err == nil {
				t.Fatalf("Row %s passes in spite of the defect", defect.row)
			}
			if !strings.Contains(err.Error(), defect.reason) {
				t.Fatalf("Row %s fails, but not with %q: %v\n%s", defect.row, defect.reason, err, tr.diagnostics())
			}
			t.Logf("Row %s fails as expected: %v", defect.row, err)
		})
	}
}

// caseNamed returns a case of a row.
func caseNamed(t *testing.T, row, name string) (*scenario, func(*trial)) {
	t.Helper()
	for _, sc := range run.rows {
		for _, c := range sc.cases {
			if sc.row == row && c.name == name {
				return sc, c.run
			}
		}
	}
	t.Fatalf("there is no case %q of row %s", name, row)
	return nil, nil
}
