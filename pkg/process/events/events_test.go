// SPDX-License-Identifier: Apache-2.0

// Tests of the recorder: order, capacity, deferral, flush and retries; and the API server that
// it writes to.

package events

import (
	"context"
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
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func Example() {
	ctx, client := context.Background(), fake.NewClientset().CoreV1()
	sink := &typedcorev1.EventSinkImpl{Interface: client.Events(metav1.NamespaceAll)}
	recorder, flush := Start(ctx, sink, scheme.Scheme, corev1.EventSource{Component: "gadget-controller"})
	recorder.DeferWhile(func(string) bool { return true }) // while keys of the namespace wait for a worker
	recorder.Eventf(pod("web"), corev1.EventTypeWarning, "Drifted", "The Pod has %d labels too many", 2)
	flush(5 * time.Second) // before the process ends
	written, err := client.Events("team-a").List(ctx, metav1.ListOptions{})
	fmt.Println(written.Items[0].Reason, written.Items[0].Message, err)
	// Output:
	// Drifted The Pod has 2 labels too many <nil>
}

// An Event that can't be written must not block Events about other objects, and writing the
// Events must not take longer than the work that they report.
func TestFlushWaitsForEventsWhichAreWrittenConcurrently(t *testing.T) {
	run(t, &sink{takes: 100 * time.Millisecond}, func(t *testing.T, s *sink, r *recorder) {
		for i := range 20 {
			r.done(fmt.Sprint(i), "")
		}
		if took := r.flush(time.Minute); took != time.Second || s.written() != 20 {
			t.Errorf("%d Events were written in %v, not 20 in a second", s.written(), took)
		}
		if took := r.flush(time.Minute); took != 0 || s.calls != 20 {
			t.Errorf("flush of nothing took %v and wrote %q", took, s.messages)
		}
	})
}

func TestEventsOfOneObjectAreWrittenInOrder(t *testing.T) {
	run(t, &sink{takes: 100 * time.Millisecond, slow: "2 of 5"}, func(t *testing.T, s *sink, r *recorder) {
		const objects, each = 21, 5
		for i := range each {
			for name := range objects {
				changed := pod(fmt.Sprint(name))
				changed.ResourceVersion = fmt.Sprint(i)
				r.Event(changed, corev1.EventTypeNormal, "Done", fmt.Sprintf("%d of %d", i, name))
			}
		}
		r.flush(time.Minute)
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

func TestFlushGivesUpInTime(t *testing.T) {
	run(t, &sink{err: errors.New("connection refused")}, func(t *testing.T, _ *sink, r *recorder) {
		r.done("a", "")
		if took := r.flush(5 * time.Second); took != 5*time.Second {
			t.Errorf("flush took %v, not 5 s", took)
		}
	})
}

// Recording must not wait for the API server, because syncs record Events.
func TestTenThousandEventsMayWait(t *testing.T) {
	run(t, &sink{}, func(t *testing.T, s *sink, r *recorder) {
		began := time.Now()
		s.stuck = make(chan struct{})
		for i := range writers {
			r.done(fmt.Sprint("first-", i), "")
		}
		synctest.Wait() // these are being written
		for i := range capacity + 1 {
			r.done(fmt.Sprint(i), fmt.Sprint(i))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("recording took %v", took)
		}
		close(s.stuck)
		synctest.Wait()
		r.done("later", "")
		r.flush(time.Minute)
		if s.written() != writers+capacity+1 || slices.Contains(s.messages, fmt.Sprint(capacity)) {
			t.Errorf("%d Events were written, not the first %d and one after these", s.written(), writers+capacity)
		}
	})
}

// Events of namespaces that the API server fails to write, at once or after 30 s, do not delay
// others. Once they can be written, all are, in the order of each object.
func TestNamespacesWhoseEventsFailDelayNoOther(t *testing.T) {
	for _, namespaces := range []int{1, 2, 20} {
		for _, takes := range []time.Duration{0, 30 * time.Second} {
			t.Run(fmt.Sprintf("%d namespaces, after %v", namespaces, takes), func(t *testing.T) {
				run(t, &sink{}, func(t *testing.T, s *sink, r *recorder) {
					s.breaks(takes)
					for i := range 10 {
						for namespace := range namespaces {
							r.Event(brokenPod(namespace, i%5), corev1.EventTypeNormal, "Done", fmt.Sprint(i))
						}
					}
					for i := range 6 {
						advance(7 * time.Second)
						r.done("a", fmt.Sprint("other", i))
						advance(2 * time.Second)
						if s.written() != i+1 {
							t.Errorf("%d of %d Events of another namespace were written", s.written(), i+1)
						}
					}
					s.broken.Store(false)
					advance(time.Hour)
					for i := range 10 {
						first := slices.Index(s.messages, fmt.Sprint(i%5))
						if at := slices.Index(s.messages, fmt.Sprint(i)); s.written() != 6+10*namespaces || at < first {
							t.Errorf("%d Events were written: %q", s.written(), s.messages)
						}
					}
				})
			})
		}
	}
}

func TestTheNumberOfWritesThatHangIsBounded(t *testing.T) {
	run(t, &sink{}, func(t *testing.T, s *sink, r *recorder) {
		s.breaks(30 * time.Second)
		for namespace := range 2 * maxHanging {
			r.Event(brokenPod(namespace, 0), corev1.EventTypeNormal, "Done", "")
		}
		advance(29 * time.Second)
		if began := s.brokenCalls.Load(); began != maxHanging+writers {
			t.Errorf("%d writes hang", began)
		}
		advance(time.Hour)
	})
}

func TestANamespaceLeavesRoomForTheEventsOfOthers(t *testing.T) {
	run(t, &sink{}, func(t *testing.T, s *sink, r *recorder) {
		s.breaks(0)
		for i := range capacity + 10 {
			r.Event(brokenPod(0, i), corev1.EventTypeNormal, "Done", "")
		}
		advance(0)
		for i := range 1000 {
			r.done(fmt.Sprint(i), "")
		}
		r.mu.Lock()
		waiting := r.count
		r.mu.Unlock()
		advance(time.Second)
		if s.written() != 1000 || waiting > capacity {
			t.Errorf("%d Events of another namespace were written while %d waited", s.written(), waiting)
		}
	})
}

// Whatever defers an Event, a flush writes it at once.
func TestUrgentWorkDefersEvents(t *testing.T) {
	for name, row := range map[string]struct {
		after   time.Duration
		urgent  string // the namespace with such work, after the first check
		written int
	}{
		"while there is urgent work":        {maxDeferral - 1, "team-a", 0},
		"but not longer than the limit":     {maxDeferral, "team-a", 1},
		"not once the work is done":         {recheckPeriod, "", 1},
		"not for work in another namespace": {recheckPeriod, "team-b", 1},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, &sink{}, func(t *testing.T, s *sink, r *recorder) {
				var urgent atomic.Value
				urgent.Store("team-a")
				r.DeferWhile(func(namespace string) bool { return urgent.Load() == namespace })
				r.done("a", "")
				synctest.Wait()
				urgent.Store(row.urgent)
				advance(row.after)
				if got := s.written(); got != row.written {
					t.Errorf("%d Events were written, not %d", got, row.written)
				}
				if took := r.flush(time.Minute); took != 0 || s.written() != 1 {
					t.Errorf("after a flush of %v %d Events were written, not 1", took, s.written())
				}
			})
		})
	}
}

// Nor while an Event waits for another Event about its object.
func TestNothingIsPolledAtRest(t *testing.T) {
	run(t, &sink{takes: time.Hour}, func(t *testing.T, s *sink, r *recorder) {
		looks := 0
		r.DeferWhile(func(string) bool { looks++; return looks < 3 })
		r.done("a", "first")
		r.done("a", "second")
		advance(3 * time.Hour)
		if looks != 3 || s.written() != 2 {
			t.Errorf("the recorder checked %d times for urgent work, and wrote %d Events", looks, s.written())
		}
	})
}

func TestAnEventHasItsObjectReasonTimeAndSource(t *testing.T) {
	run(t, &sink{}, func(t *testing.T, s *sink, r *recorder) {
		at := time.Now()
		r.DeferWhile(func(string) bool { return time.Since(at) < time.Second })
		r.AnnotatedEventf(pod("a"), map[string]string{"by": "test"}, corev1.EventTypeWarning, "Broken", "into %d pieces", 2)
		advance(time.Minute)
		want := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("a.%x", at.UnixNano()), Namespace: "team-a", Annotations: map[string]string{"by": "test"},
			},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "team-a", Name: "a"},
			Type:           corev1.EventTypeWarning, Reason: "Broken", Message: "into 2 pieces",
			FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
			Source: corev1.EventSource{Component: "test"}, ReportingController: "test",
		}
		if !equality.Semantic.DeepEqual(want, s.last) {
			t.Errorf("not as expected (-want +got):\n%s", diff.Diff(want, s.last))
		}
	})
}

func TestTheCorrelatorCountsAndLimitsEventsOfOneObject(t *testing.T) {
	run(t, &sink{}, func(t *testing.T, s *sink, r *recorder) {
		for range 3 {
			r.done("a", "again")
		}
		advance(0)
		if s.last.Count != 3 || s.patches != 2 {
			t.Errorf("the count is %d after %d patches", s.last.Count, s.patches)
		}
		s.err = apierrors.NewNotFound(eventsResource, "a") // as in the response to a patch after the Event has expired
		r.done("a", "again")
		advance(0)
		if s.patches != 3 || s.calls != 5 || s.last.ResourceVersion != "" {
			t.Errorf("there were %d patches of %d writes", s.patches, s.calls)
		}
		s.err = nil
		for i := range 30 {
			r.Event(pod("b"), corev1.EventTypeNormal, fmt.Sprint("Reason", i), "")
		}
		advance(0)
		if s.written() != 3+25 { // the correlator's burst
			t.Errorf("%d Events were written", s.written())
		}
	})
}

func TestAnEventIsRetriedOnlyIfThatCanHelp(t *testing.T) {
	for name, row := range map[string]struct {
		err   error
		tries int
	}{
		"no answer":         {errors.New("connection refused"), attempts},
		"unavailable":       {apierrors.NewServiceUnavailable("etcd is away"), attempts},
		"too many requests": {apierrors.NewTooManyRequests("wait", 1), attempts},
		"an expired token":  {apierrors.NewUnauthorized("renew it"), attempts},
		"not allowed":       {apierrors.NewForbidden(eventsResource, "a", nil), 1},
		"exists already":    {apierrors.NewAlreadyExists(eventsResource, "a"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, &sink{err: row.err}, func(t *testing.T, s *sink, r *recorder) {
				r.done("a", "")
				took := r.flush(time.Hour)
				if s.calls != row.tries || took != time.Duration(row.tries-1)*retryAfter {
					t.Errorf("the Event was tried %d times, not %d, in %v", s.calls, row.tries, took)
				}
			})
		})
	}
}

var eventsResource = corev1.SchemeGroupVersion.WithResource("events").GroupResource()

// sink is an API server that takes a given time for each Event.
type sink struct {
	takes time.Duration
	slow  string        // messages with this prefix take a hundred times as long
	stuck chan struct{} // if not nil, no write finishes before it is closed
	err   error
	// broken means that Events of brokenPod fail, after brokenAfter.
	broken      atomic.Bool
	brokenAfter time.Duration
	brokenCalls atomic.Int32

	mu             sync.Mutex
	calls, patches int
	messages       []string
	last           *corev1.Event
}

// breaks makes the Events of brokenPod fail.
func (s *sink) breaks(after time.Duration) {
	s.brokenAfter = after
	s.broken.Store(true)
}

func brokenPod(namespace, number int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("broken-", namespace), Name: fmt.Sprint(number)}}
}

func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	if s.broken.Load() && strings.HasPrefix(event.Namespace, "broken-") {
		s.brokenCalls.Add(1)
		<-time.After(s.brokenAfter)
		return nil, errors.New("connection refused")
	}
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
	s.last = event
	if s.err == nil {
		s.messages = append(s.messages, event.Message)
	}
	return event, s.err
}

func (s *sink) Update(event *corev1.Event) (*corev1.Event, error) { return s.Create(event) }

func (s *sink) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) {
	s.patches++
	return s.Create(event)
}

func (s *sink) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages)
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
}

// recorder is a Recorder whose flush returns how long it took.
type recorder struct {
	*Recorder
	flush func(limit time.Duration) time.Duration
}

// done records an Event about a Pod.
func (r *recorder) done(name, message string) {
	r.Event(pod(name), corev1.EventTypeNormal, "Done", message)
}

// run runs a test in a bubble, with a recorder that writes to a sink and is flushed at the
// end.
func run(t *testing.T, s *sink, test func(*testing.T, *sink, *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig()))
		started, flush := Start(ctx, s, scheme.Scheme, corev1.EventSource{Component: "test"})
		defer flush(0)
		test(t, s, &recorder{started, func(limit time.Duration) time.Duration {
			began := time.Now()
			flush(limit)
			return time.Since(began)
		}})
	})
}

// advance moves the clock of a test's bubble forward, then waits until every goroutine in
// the bubble is idle. No real time passes.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble this sets the clock forward
	synctest.Wait()
}
