// SPDX-License-Identifier: Apache-2.0

// Tests of the recorder: order, capacity, flush and retries; and the API server that
// it writes to.

package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	run(t, slow(100*time.Millisecond), func(t *testing.T, s *sink, r *recorder) {
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
	const objects, each = 21, 5
	slowThird := func(event *corev1.Event) error {
		if event.InvolvedObject.ResourceVersion == "2" {
			<-time.After(10 * time.Second)
		}
		return nil
	}
	run(t, slowThird, func(t *testing.T, s *sink, r *recorder) {
		for i := range objects * each {
			changed := pod(fmt.Sprint(i % objects))
			changed.ResourceVersion = fmt.Sprint(i / objects)
			r.Event(changed, corev1.EventTypeNormal, "Done", fmt.Sprint(i))
		}
		r.flush(time.Hour)
		for i := objects; i < objects*each; i++ {
			if slices.Index(s.messages, fmt.Sprint(i)) < slices.Index(s.messages, fmt.Sprint(i-objects)) || s.written() != objects*each {
				t.Errorf("Event %d was written before Event %d: %q", i, i-objects, s.messages)
			}
		}
	})
}

// Recording must not wait for the API server, because syncs record Events.
func TestTenThousandEventsMayWait(t *testing.T) {
	run(t, slow(time.Second), func(t *testing.T, s *sink, r *recorder) {
		began := time.Now()
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
		s.answers(slow(0))
		advance(time.Second)
		r.done("later", "")
		r.flush(time.Minute)
		if s.written() != writers+capacity+1 || slices.Contains(s.messages, fmt.Sprint(capacity)) {
			t.Errorf("%d Events were written, not the first %d and one after these", s.written(), writers+capacity)
		}
	})
}

// Events of namespaces that the API server fails to write, at once or after 30 s, do not delay
// others. Once they can be written, all are.
func TestNamespacesWhoseEventsFailDelayNoOther(t *testing.T) {
	for _, namespaces := range []int{1, 2, 20} {
		for _, takes := range []time.Duration{0, 30 * time.Second} {
			t.Run(fmt.Sprintf("%d namespaces, after %v", namespaces, takes), func(t *testing.T) {
				run(t, broken(takes), func(t *testing.T, s *sink, r *recorder) {
					for i := range 10 * namespaces {
						r.Event(brokenPod(i%namespaces, i), corev1.EventTypeNormal, "Done", "")
					}
					for i := range 6 {
						advance(7 * time.Second)
						r.done("a", fmt.Sprint("other", i))
						advance(2 * time.Second)
						if s.written() != i+1 {
							t.Errorf("%d of %d Events of another namespace were written", s.written(), i+1)
						}
					}
					s.answers(slow(0))
					advance(time.Hour)
					if s.written() != 6+10*namespaces {
						t.Errorf("%d Events were written: %q", s.written(), s.messages)
					}
				})
			})
		}
	}
}

func TestTheNumberOfWritesThatHangIsBounded(t *testing.T) {
	run(t, broken(30*time.Second), func(t *testing.T, s *sink, r *recorder) {
		for namespace := range 2 * maxHanging {
			r.Event(brokenPod(namespace, 0), corev1.EventTypeNormal, "Done", "")
		}
		advance(29 * time.Second)
		s.mu.Lock()
		calls := s.calls
		s.mu.Unlock()
		if calls != maxHanging+writers {
			t.Errorf("%d writes hang", calls)
		}
		advance(time.Hour)
	})
}

func TestANamespaceLeavesRoomForTheEventsOfOthers(t *testing.T) {
	run(t, broken(0), func(t *testing.T, s *sink, r *recorder) {
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

func TestAnEventHasItsObjectReasonTimeAndSource(t *testing.T) {
	run(t, slow(time.Second), func(t *testing.T, s *sink, r *recorder) {
		at := time.Now()
		r.done("a", "so that the next one waits")
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
	run(t, slow(0), func(t *testing.T, s *sink, r *recorder) {
		for range 3 {
			r.done("a", "again")
		}
		advance(0)
		if s.last.Count != 3 || s.patches != 2 {
			t.Errorf("the count is %d after %d patches", s.last.Count, s.patches)
		}
		s.answers(fails(apierrors.NewNotFound(eventsResource, "a"))) // as in the response to a patch after the Event has expired
		r.done("a", "again")
		advance(0)
		if s.patches != 3 || s.calls != 5 || s.last.ResourceVersion != "" {
			t.Errorf("there were %d patches of %d writes", s.patches, s.calls)
		}
		s.answers(slow(0))
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
	refused := errors.New("connection refused")
	for name, row := range map[string]struct {
		err   error
		limit time.Duration
		tries int
		took  time.Duration
	}{
		"no answer":         {refused, time.Hour, attempts, (attempts - 1) * retryAfter},
		"no answer in time": {refused, 5 * time.Second, 1, 5 * time.Second},
		"unavailable":       {apierrors.NewServiceUnavailable("etcd is away"), time.Hour, attempts, (attempts - 1) * retryAfter},
		"too many requests": {apierrors.NewTooManyRequests("wait", 1), time.Hour, attempts, (attempts - 1) * retryAfter},
		"an expired token":  {apierrors.NewUnauthorized("renew it"), time.Hour, attempts, (attempts - 1) * retryAfter},
		"not allowed":       {apierrors.NewForbidden(eventsResource, "a", nil), time.Hour, 1, 0},
		"exists already":    {apierrors.NewAlreadyExists(eventsResource, "a"), time.Hour, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, fails(row.err), func(t *testing.T, s *sink, r *recorder) {
				r.done("a", "")
				took := r.flush(row.limit)
				advance(time.Hour)
				if s.calls != row.tries || took != row.took {
					t.Errorf("the Event was tried %d times, not %d, in %v", s.calls, row.tries, took)
				}
			})
		})
	}
}

var eventsResource = corev1.SchemeGroupVersion.WithResource("events").GroupResource()

// sink is an API server. Its answer takes a time for each Event, and then may be an error.
type sink struct {
	mu             sync.Mutex
	answer         answer
	calls, patches int
	messages       []string
	last           *corev1.Event
}

type answer = func(*corev1.Event) error

// slow returns an answer that takes the Event after some time.
func slow(after time.Duration) answer {
	return func(*corev1.Event) error {
		<-time.After(after)
		return nil
	}
}

func fails(err error) answer { return func(*corev1.Event) error { return err } }

// broken returns an answer that is an error after some time for Events of brokenPod.
func broken(after time.Duration) answer {
	return func(event *corev1.Event) error {
		if !strings.HasPrefix(event.Namespace, "broken-") {
			return nil
		}
		<-time.After(after)
		return errors.New("connection refused")
	}
}

func brokenPod(namespace, number int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("broken-", namespace), Name: fmt.Sprint(number)}}
}

func (s *sink) answers(with answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = with
}

func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	s.mu.Lock()
	answer := s.answer
	s.calls++
	s.mu.Unlock()
	err := answer(event)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = event
	if err == nil {
		s.messages = append(s.messages, event.Message)
	}
	return event, err
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
func run(t *testing.T, with answer, test func(*testing.T, *sink, *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig()))
		s := &sink{answer: with}
		started, flush := Start(ctx, s, scheme.Scheme, corev1.EventSource{Component: "test"})
		defer flush(0)
		test(t, s, &recorder{started, func(limit time.Duration) time.Duration {
			began := time.Now()
			flush(limit)
			return time.Since(began)
		}})
	})
}

// advance moves the clock of a test's bubble forward, then waits until every goroutine in it is idle.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble this sets the clock forward
	synctest.Wait()
}
