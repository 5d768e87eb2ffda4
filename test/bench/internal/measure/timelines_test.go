// SPDX-License-Identifier: Apache-2.0

// Tests of timelines, and of the time of the last first Event.

package measure

import (
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/internal/audit"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/devcluster"
	"example.com/sample-controller/test/bench/internal/objects"
)

func TestTimelines(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	write := func(user, verb, resource, name string, code, milliseconds int) audit.Write {
		resource, subresource, _ := strings.Cut(resource, "/")
		return audit.Write{User: user, Verb: verb, Resource: resource, Subresource: subresource, Namespace: "n", Name: name, Code: code, Done: began.Add(time.Duration(milliseconds) * time.Millisecond)}
	}
	const measured, other = devcluster.User, "somebody"
	for name, test := range map[string]struct {
		writes          []audit.Write
		created, status time.Duration
		missing         int
	}{
		"complete": {[]audit.Write{
			write(other, "create", "foos", "a", 201, 10), write(measured, "create", "deployments", "a", 201, 13), write(measured, "update", "foos/status", "a", 200, 17),
		}, 3 * time.Millisecond, 7 * time.Millisecond, 0},
		"only the first status counts": {[]audit.Write{
			write(other, "create", "foos", "a", 201, 10), write(measured, "create", "deployments", "a", 201, 13), write(measured, "update", "foos/status", "a", 200, 17), write(measured, "update", "foos/status", "a", 200, 99),
		}, 3 * time.Millisecond, 7 * time.Millisecond, 0},
		"refused writes do not count": {[]audit.Write{
			write(other, "create", "foos", "a", 201, 10), write(measured, "create", "deployments", "a", 409, 12), write(measured, "create", "deployments", "a", 201, 14),
			write(measured, "update", "foos/status", "a", 409, 15), write(measured, "patch", "foos/status", "a", 200, 20),
		}, 4 * time.Millisecond, 10 * time.Millisecond, 0},
		"writes of other accounts do not count": {[]audit.Write{
			write(other, "create", "foos", "a", 201, 10), write(other, "create", "deployments", "a", 201, 13), write(measured, "update", "foos/status", "a", 200, 17),
		}, 0, 0, 1},
		"a write before the acknowledgement takes no time": {[]audit.Write{
			write(measured, "create", "deployments", "a", 201, 9), write(other, "create", "foos", "a", 201, 10), write(measured, "update", "foos/status", "a", 200, 12),
		}, 0, 2 * time.Millisecond, 0},
		"another Foo": {[]audit.Write{
			write(other, "create", "foos", "b", 201, 10), write(measured, "create", "deployments", "b", 201, 13), write(measured, "update", "foos/status", "b", 200, 17),
		}, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := timelines{"n/a": {}}
			l.add(test.writes)
			created, status, missing := l.latencies()
			if missing != test.missing || l.complete() != (missing == 0) {
				t.Fatalf("%d missing, complete %v; want %d", missing, l.complete(), test.missing)
			}
			if missing == 0 && (created[0] != test.created || status[0] != test.status) {
				t.Errorf("created after %v, status after %v; want %v, %v", created[0], status[0], test.created, test.status)
			}
		})
	}
}

func TestLastFirstEvent(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	event := func(name string, code, second int) audit.Write {
		return audit.Write{Verb: "create", Resource: "events", Namespace: "n", Name: name, Code: code, Done: began.Add(time.Duration(second) * time.Second)}
	}
	foos := []*samplev1alpha1.Foo{objects.Foo("n", "a"), objects.Foo("n", "b")}
	for name, test := range map[string]struct {
		writes []audit.Write
		want   time.Time
	}{
		"the later of two":         {[]audit.Write{event("a.1", 201, 5), event("b.1", 201, 3)}, began.Add(5 * time.Second)},
		"only a Foo's first event": {[]audit.Write{event("a.1", 201, 1), event("b.1", 201, 3), event("a.2", 201, 9)}, began.Add(3 * time.Second)},
		"a Foo without an event":   {[]audit.Write{event("a.1", 201, 1), event("ab.1", 201, 2)}, time.Time{}},
		"a refused event":          {[]audit.Write{event("a.1", 201, 1), event("b.1", 500, 2)}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastFirstEvent(test.writes, foos); !got.Equal(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
