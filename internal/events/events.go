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

// Package events writes Events in the background, and can wait for those that
// are on their way.
package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// Start returns a recorder whose Events a goroutine writes to a sink, one after
// the other; recording one never waits. What is recorded while a thousand are
// waiting is dropped.
//
// The function returned ends that: it waits until all that was recorded before
// is written or given up, but no longer than limit. It is called once, and
// after it nothing must be recorded. The end of ctx ends nothing.
func Start(ctx context.Context, sink record.EventSink, scheme *runtime.Scheme, source corev1.EventSource) (recorder record.EventRecorder, flush func(limit time.Duration)) {
	ctx = context.WithoutCancel(ctx)
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	marked := &markedSink{EventSink: sink, mark: uuid.NewUUID(), reached: make(chan struct{})}
	broadcaster.StartRecordingToSink(marked)
	recorder = broadcaster.NewRecorder(scheme, source)
	return recorder, func(limit time.Duration) {
		defer broadcaster.Shutdown()
		// Events come out in the order in which they went in, so the mark comes last.
		recorder.Event(&corev1.ObjectReference{Kind: "Mark", UID: marked.mark}, corev1.EventTypeNormal, "Mark", "")
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-marked.reached:
		case <-timer.C:
			klog.FromContext(ctx).Error(nil, "Events that could not be written in time are lost", "waited", limit)
		}
	}
}

// markedSink says when the Event with the mark has come; that one it keeps.
type markedSink struct {
	record.EventSink
	mark    types.UID
	reached chan struct{}
}

// Create writes an Event.
func (s *markedSink) Create(event *corev1.Event) (*corev1.Event, error) {
	if event.InvolvedObject.UID == s.mark {
		close(s.reached)
		return event, nil
	}
	return s.EventSink.Create(event)
}
