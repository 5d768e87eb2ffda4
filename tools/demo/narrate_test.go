// SPDX-License-Identifier: Apache-2.0

// Tests of the order of the lines.

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/internal/audit"
)

// made returns the creation of a Pod that the server received and completed at the given
// times.
func made(name, version string, received, done int) audit.Write {
	return edited(write("create pods", `{"metadata":{"resourceVersion":"`+version+`"},"spec":{"nodeName":"node-1"}}`), func(w *audit.Write) {
		w.Name, w.Received, w.Done = name, ms(received), ms(done)
	})
}

// due is a time at which all writes of these tests are due.
var due = ms(1000).Add(hold)

func told(lines []line) string {
	var all []string
	for _, l := range lines {
		all = append(all, fmt.Sprintf("%d %s %s", l.at.Sub(noon).Milliseconds(), l.did, l.name))
	}
	return strings.Join(all, "; ")
}

func TestOrderOfWrites(t *testing.T) {
	deletion := func(name string, received, done int) audit.Write {
		return edited(made(name, "", received, done), func(w *audit.Write) { w.Verb, w.Code, w.Response = "delete", 200, object(success) })
	}
	status := func(response string, received, done int) audit.Write {
		return edited(write("patch foos/status", response), func(w *audit.Write) { w.Received, w.Done = ms(received), ms(done) })
	}
	tests := map[string]struct {
		writes []audit.Write
		want   string
	}{
		"in the order of reception, not of completion": {
			[]audit.Write{made("effect", "", 3, 5), made("cause", "", 0, 6)}, "5 created cause; 5 created effect",
		},
		"a deletion, whose response has no resourceVersion": {
			[]audit.Write{made("after", "9", 20, 25), deletion("before", 10, 12), made("before", "7", 0, 2)}, "2 created before; 12 deleted before; 25 created after",
		},
		"at the same time, by resourceVersion": {
			[]audit.Write{made("web", "7", 0, 2), made("second", "9", 4, 9), made("first", "8", 5, 8)}, "2 created web; 8 created first; 9 created second",
		},
		"the removal of the last finalizer, whose response has an old resourceVersion": {
			[]audit.Write{
				edited(write("create foos", waitingFoo), func(w *audit.Write) { w.Response.Metadata.ResourceVersion = "7" }),
				status(`{"metadata":{"resourceVersion":"8","deletionTimestamp":"2026-01-01T12:00:00Z","finalizers":["foregroundDeletion"]},"spec":{"replicas":1},"status":{"availableReplicas":1}}`, 2, 5),
				edited(status(`{"kind":"PartialObjectMetadata","metadata":{"resourceVersion":"7","deletionTimestamp":"2026-01-01T12:00:00Z"}}`, 3, 6), func(w *audit.Write) { w.Subresource = "" }),
			}, "2 created web; 5 reported web; 6 removed web",
		},
		"two deletions at the same time": {
			[]audit.Write{
				write("create pods", terminatingPod),
				edited(write("delete pods", endedPod), func(w *audit.Write) { w.Received = ms(1) }),
				edited(write("delete pods", endedPod), func(w *audit.Write) { w.Received = ms(2) }),
			}, "2 created web; 2 removed web",
		},
		"two deletions at the same time, without grace": {
			[]audit.Write{
				write("create pods", aPod),
				edited(write("delete pods", endedPod), func(w *audit.Write) { w.Received = ms(1) }),
				edited(write("delete pods", endedPod), func(w *audit.Write) { w.Received = ms(2) }),
			}, "2 created web; 2 deleted web",
		},
		"each write compared to the version before": {
			[]audit.Write{
				edited(write("create foos", oneReplica), func(w *audit.Write) { w.Done = ms(1) }),
				status(`{"metadata":{"resourceVersion":"11"},"spec":{"replicas":1},"status":{"availableReplicas":1}}`, 2, 6),
				status(`{"metadata":{"resourceVersion":"10"},"spec":{"replicas":1}}`, 3, 5),
			}, "1 created web; 6 reported web",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := narrator{resources: narrated}
			if got := told(n.narrate(test.writes, due)); got != test.want {
				t.Errorf("got %s; want %s", got, test.want)
			}
		})
	}
}

func TestWritesWaitForEarlierOnes(t *testing.T) {
	n := narrator{resources: narrated}
	at := func(now time.Time, want string, writes ...audit.Write) {
		t.Helper()
		if got := told(n.narrate(writes, now)); got != want {
			t.Errorf("%d ms: got %q, want %q", now.Sub(noon).Milliseconds(), got, want)
		}
	}
	at(ms(10).Add(hold-1), "", made("effect", "8", 5, 10))
	at(ms(10).Add(hold), "8 created cause; 10 created effect", made("cause", "7", 0, 8))
	at(due, "")
}

func TestIgnoredWrites(t *testing.T) {
	for name, w := range map[string]audit.Write{
		"rejected":                edited(write("update foos", threeReplicas), func(w *audit.Write) { w.Code = 409 }),
		"of another kind":         write("create secrets", `{}`),
		"of another group's kind": edited(write("create foos", `{}`), func(w *audit.Write) { w.Group = "example.com" }),
		"to an unknown object":    edited(write("update foos", threeReplicas), func(w *audit.Write) { w.Name = "unknown" }),
	} {
		n := narrator{resources: narrated}
		if got := told(n.narrate([]audit.Write{write("create foos", oneReplica), w}, due)); got != "2 created web" {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestDeleteCollectionIsALineForEachObject(t *testing.T) {
	many := edited(write("deletecollection pods", `{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`),
		func(w *audit.Write) { w.Name, w.Received, w.Done = "", ms(4), ms(5) })
	report := edited(write("patch pods/status", `{"metadata":{"deletionTimestamp":"2026-01-01T12:00:30Z"},"spec":{"nodeName":"node-1"}}`),
		func(w *audit.Write) { w.Name, w.Received, w.Done = "a", ms(6), ms(7) })
	n := narrator{resources: narrated}
	want := "1 created a; 2 created b; 5 deleted a; 5 deleted b" // The status of a is unchanged.
	if got := told(n.narrate([]audit.Write{made("a", "7", 0, 1), made("b", "8", 1, 2), many, report}, due)); got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

func TestLineOfAWrite(t *testing.T) {
	elsewhere := edited(write("create foos", oneReplica), func(w *audit.Write) { w.Namespace, w.User, w.Manager = "b", "system:kube-scheduler", "" })
	tests := map[string]struct {
		write audit.Write
		want  line
	}{
		"in the default namespace": {write("create foos", oneReplica), line{ms(2), "you", "created", "Foo", "web", "1 replica"}},
		"in another namespace":     {elsewhere, line{ms(2), "kube-scheduler", "created", "Foo", "b/web", "1 replica"}},
	}
	for name, test := range tests {
		n := narrator{self: "admin", resources: narrated}
		if got, ok := n.lineOf(test.write); !ok || got != test.want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, ok, test.want)
		}
	}
}
