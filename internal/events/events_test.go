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

package events

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// sink is an API server that takes its time for each Event.
type sink struct {
	takes time.Duration
	stuck chan struct{} // if not nil, nothing is written before it is closed
	err   error

	mu       sync.Mutex
	messages []string
}

func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	time.Sleep(s.takes) //nolint:forbidigo // in a bubble this sets the clock forward
	if s.stuck != nil {
		<-s.stuck
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.messages = append(s.messages, event.Message)
	}
	return event, s.err
}

func (s *sink) Update(event *corev1.Event) (*corev1.Event, error) { return s.Create(event) }

func (s *sink) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) { return s.Create(event) }

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
}

func TestFlushWaitsForWhatIsOnItsWay(t *testing.T) {
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
		if len(s.messages) != 20 || s.messages[19] != "19" {
			t.Errorf("when flush returned these were written: %q", s.messages)
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

// Recording must not wait for the API server: it happens in a sync.
func TestRecordingDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{stuck: make(chan struct{})}
		recorder, flush := start(t, s)
		began := time.Now()
		for i := range 2000 { // more than are kept
			recorder.Event(pod(fmt.Sprint(i)), corev1.EventTypeNormal, "Done", "")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("recording took %v", took)
		}
		flush(time.Second)
		close(s.stuck)
	})
}

// start is Start, with the test's logger.
func start(t *testing.T, s *sink) (recorder record.EventRecorder, flush func(time.Duration)) {
	t.Helper()
	ctx := klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig()))
	return Start(ctx, s, scheme.Scheme, corev1.EventSource{Component: "test"})
}
