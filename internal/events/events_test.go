// SPDX-License-Identifier: Apache-2.0

// Tests of the recorder: order, capacity, deferral, flush and retries, and the API server
// that they write to.

package events

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestFlushWaitsForEventsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{takes: 100 * time.Millisecond}
		recorder, flush := start(t, s)
		for i := range 20 {
			recorder.Event(pod(fmt.Sprint(i)), corev1.EventTypeNormal, "Done", fmt.Sprint(i))
		}
		began := time.Now()
		flush(time.Minute)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("flush took %v for 20 Events of 100 ms", took)
		}
		if len(s.messages) != 20 {
			t.Errorf("when flush returned these were written: %q", s.messages)
		}
	})
}

func TestEventsOfOneObjectAreWrittenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{takes: 100 * time.Millisecond, slow: "2 of 5"}
		recorder, flush := start(t, s)
		const objects, each = 21, 5
		for i := range each {
			for name := range objects {
				recorder.Event(pod(fmt.Sprint(name)), corev1.EventTypeNormal, "Done", fmt.Sprintf("%d of %d", i, name))
			}
		}
		flush(time.Minute)
		for name := range objects {
			var of []string
			for _, message := range s.messages {
				if strings.HasSuffix(message, fmt.Sprintf(" of %d", name)) {
					of = append(of, message[:1])
				}
			}
			if got := strings.Join(of, ""); got != "01234" {
				t.Errorf("Events of object %d were written in the order %s", name, got)
			}
		}
	})
}

// An Event that can't be written must not block those of other objects, and writing the
// Events must not take longer than the work that they report.
func TestEventsOfSeveralObjectsAreWrittenConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{takes: time.Second}
		recorder, flush := start(t, s)
		for i := range lanes {
			recorder.Event(podIn(t, recorder, i), corev1.EventTypeNormal, "Done", "")
		}
		began := time.Now()
		flush(time.Minute)
		if took := time.Since(began); took != time.Second || len(s.messages) != lanes {
			t.Errorf("%d Events of a second each took %v", len(s.messages), took)
		}
	})
}

func TestFlushGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, flush := start(t, &sink{err: errors.New("connection refused")})
		recorder.Event(pod("a"), corev1.EventTypeNormal, "Done", "")
		began := time.Now()
		flush(5 * time.Second)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("flush took %v, not 5 s", took)
		}
	})
}

func TestFlushOfNothingIsImmediateAndWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		_, flush := start(t, s)
		began := time.Now()
		flush(time.Minute)
		if took := time.Since(began); took != 0 || len(s.messages) != 0 {
			t.Errorf("flush took %v and wrote %q", took, s.messages)
		}
	})
}

// Recording must not wait for the API server, because syncs record Events.
func TestRecordingDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{stuck: make(chan struct{})}
		recorder, flush := start(t, s)
		began := time.Now()
		for i := range 2000 { // more than the capacity of client-go's broadcaster
			recorder.Event(pod(fmt.Sprint(i)), corev1.EventTypeNormal, "Done", "")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("recording took %v", took)
		}
		flush(time.Second)
		close(s.stuck)
	})
}

func TestTenThousandEventsMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{stuck: make(chan struct{})}
		recorder, flush := start(t, s)
		for i := range lanes {
			recorder.Event(podIn(t, recorder, i), corev1.EventTypeNormal, "Done", "")
		}
		synctest.Wait() // these are being written
		for i := range capacity + 1 {
			recorder.Event(pod(fmt.Sprint(i)), corev1.EventTypeNormal, "Done", fmt.Sprint(i))
		}
		close(s.stuck)
		flush(time.Minute)
		if len(s.messages) != lanes+capacity || slices.Contains(s.messages, fmt.Sprint(capacity)) {
			t.Errorf("%d Events were written, not the first %d", len(s.messages), lanes+capacity)
		}
	})
}

func TestUrgentWorkDefersEvents(t *testing.T) {
	for name, row := range map[string]struct {
		after   time.Duration
		urgent  bool
		written int
	}{
		"while there is urgent work":    {maxDeferral - 1, true, 0},
		"but not longer than the limit": {maxDeferral, true, 1},
		"not once the work is done":     {recheckPeriod, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var urgent atomic.Bool
				urgent.Store(true)
				s := &sink{}
				recorder, flush := start(t, s)
				recorder.DeferWhile(func(string) bool { return urgent.Load() })
				recorder.Event(pod("a"), corev1.EventTypeNormal, "Done", "")
				synctest.Wait()
				urgent.Store(row.urgent)
				time.Sleep(row.after) //nolint:forbidigo // in a bubble this moves the clock forward
				synctest.Wait()
				if got := s.written(); got != row.written {
					t.Errorf("%d Events were written, not %d", got, row.written)
				}
				flush(0)
			})
		})
	}
}

func TestFlushDoesNotWaitForUrgentWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		recorder, flush := start(t, s)
		recorder.DeferWhile(func(string) bool { return true })
		recorder.Event(pod("a"), corev1.EventTypeNormal, "Done", "")
		began := time.Now()
		flush(time.Minute)
		if len(s.messages) != 1 || time.Since(began) != 0 {
			t.Errorf("%d Events were written, in %v", len(s.messages), time.Since(began))
		}
	})
}

func TestAnEventHasItsObjectReasonTimeAndSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := &sink{}, time.Now()
		recorder, flush := start(t, s)
		recorder.DeferWhile(func(string) bool { return time.Since(at) < time.Second })
		recorder.Event(pod("a"), corev1.EventTypeWarning, "Broken", "into pieces")
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble this moves the clock forward
		flush(time.Minute)
		want := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("a.%x", at.UnixNano()), Namespace: "team-a"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "team-a", Name: "a"},
			Type:           corev1.EventTypeWarning, Reason: "Broken", Message: "into pieces",
			FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
			Source: corev1.EventSource{Component: "test"}, ReportingController: "test",
		}
		if !equality.Semantic.DeepEqual(want, s.last) {
			t.Errorf("not as expected (-want +got):\n%s", diff.Diff(want, s.last))
		}
	})
}

func TestAnEventSeenBeforeIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		recorder, flush := start(t, s)
		for range 3 {
			recorder.Event(pod("a"), corev1.EventTypeNormal, "Done", "again")
		}
		flush(time.Minute)
		if s.last.Count != 3 {
			t.Errorf("the count is %d", s.last.Count)
		}
	})
}

func TestEventsOfOneObjectAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		recorder, flush := start(t, s)
		for i := range 30 {
			recorder.Event(pod("a"), corev1.EventTypeNormal, fmt.Sprint("Reason", i), "")
		}
		flush(time.Minute)
		if len(s.messages) != 25 { // the correlator's burst
			t.Errorf("%d Events were written", len(s.messages))
		}
	})
}

func TestAnEventIsRetriedOnlyIfThatCanHelp(t *testing.T) {
	events := corev1.SchemeGroupVersion.WithResource("events").GroupResource()
	for name, row := range map[string]struct {
		err   error
		tries int
	}{
		"no answer":         {errors.New("connection refused"), attempts},
		"unavailable":       {apierrors.NewServiceUnavailable("etcd is away"), attempts},
		"too many requests": {apierrors.NewTooManyRequests("wait", 1), attempts},
		"an expired token":  {apierrors.NewUnauthorized("renew it"), attempts},
		"not allowed":       {apierrors.NewForbidden(events, "a", nil), 1},
		"exists already":    {apierrors.NewAlreadyExists(events, "a"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &sink{err: row.err}
				recorder, flush := start(t, s)
				recorder.Event(pod("a"), corev1.EventTypeNormal, "Done", "")
				flush(time.Hour)
				if s.calls != row.tries {
					t.Errorf("the Event was tried %d times, not %d", s.calls, row.tries)
				}
			})
		})
	}
}

func TestNothingIsPolledAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		recorder, flush := start(t, &sink{})
		recorder.DeferWhile(func(string) bool { looks++; return looks < 3 })
		recorder.Event(pod("a"), corev1.EventTypeNormal, "Done", "")
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble this moves the clock forward
		synctest.Wait()
		if looks != 3 {
			t.Errorf("the recorder checked %d times for urgent work", looks)
		}
		flush(time.Minute)
	})
}

// sink is an API server that takes a given time for each Event.
type sink struct {
	takes time.Duration
	slow  string        // messages with this prefix take a hundred times as long
	stuck chan struct{} // if not nil, no write finishes before it is closed
	err   error

	mu       sync.Mutex
	calls    int
	messages []string
	last     *corev1.Event
}

func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	takes := s.takes
	if s.slow != "" && strings.HasPrefix(event.Message, s.slow) {
		takes *= 100
	}
	time.Sleep(takes) //nolint:forbidigo // in a bubble this moves the clock forward
	if s.stuck != nil {
		<-s.stuck
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.err == nil {
		s.messages = append(s.messages, event.Message)
		s.last = event
	}
	return event, s.err
}

func (s *sink) Update(event *corev1.Event) (*corev1.Event, error) { return s.Create(event) }

func (s *sink) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) { return s.Create(event) }

func (s *sink) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages)
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
}

// podIn returns a Pod whose Events go into lane i.
func podIn(t *testing.T, r *Recorder, i int) *corev1.Pod {
	t.Helper()
	for n := range 1000 {
		p := pod(fmt.Sprint("pod-", n))
		about := &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
		if r.lane(about) == &r.lanes[i] {
			return p
		}
	}
	t.Fatalf("no Pod's Events go into lane %d", i)
	return nil
}

// start calls Start with the test's logger.
func start(t *testing.T, s *sink) (recorder *Recorder, flush func(time.Duration)) {
	t.Helper()
	ctx := klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig()))
	return Start(ctx, s, scheme.Scheme, corev1.EventSource{Component: "test"})
}
