// SPDX-License-Identifier: Apache-2.0

// The sink of the tests.

package events

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

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
