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

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// latency is how old an event is when it arrives. It differs between resources
// so that events arrive in the same order in each run.
var latency = map[string]time.Duration{"deployments": 100 * time.Microsecond, "foos": 200 * time.Microsecond}

// apiWatch delivers the changes of one resource to one session, in their order,
// from a version on. As of a real watch, what is lost of it is lost until the
// next list: nobody knows.
type apiWatch struct {
	session  *session
	resource string
	version  int
	result   chan watch.Event
	// done ends it for its reader, expired for the API server.
	done    context.Context
	stop    context.CancelFunc
	expired chan struct{}
	once    sync.Once
}

func newAPIWatch(ctx context.Context, s *session, resource, resourceVersion string) (*apiWatch, error) {
	version, err := strconv.Atoi(resourceVersion)
	if err != nil {
		return nil, fmt.Errorf("watching %s from version %q: %w", resource, resourceVersion, err)
	}
	w := &apiWatch{session: s, resource: resource, version: version - firstVersion, result: make(chan watch.Event), expired: make(chan struct{})}
	w.done, w.stop = context.WithCancel(ctx)
	return w, nil
}

// Stop is the reader's end of it.
func (w *apiWatch) Stop() { w.stop() }

// ResultChan is where the events come out.
func (w *apiWatch) ResultChan() <-chan watch.Event { return w.result }

// expire ends the watch with 410 Gone: the reader has to list again.
func (w *apiWatch) expire() { w.once.Do(func() { close(w.expired) }) }

// delivery is an event on its way. A fault decides what becomes of it.
type delivery struct {
	*apiWatch
	event watch.Event
}

func (w *apiWatch) pump() {
	defer close(w.result)
	defer w.stop()
	for {
		changes, more := w.session.world.api.next(w.version)
		for _, change := range changes {
			w.version++
			if change.id.resource == w.resource && !w.deliver(change) {
				return
			}
		}
		select {
		case <-more:
		case <-w.expired:
			w.sayExpired()
			return
		case <-w.done.Done():
			return
		}
	}
}

// deliver returns false where nothing can be delivered any more.
func (w *apiWatch) deliver(c change) bool {
	if !w.wait(func() time.Duration { return time.Until(c.at.Add(latency[w.resource])) }) || !w.waitWhileHeld() {
		return false
	}
	// A reader owns what it reads.
	d := &delivery{apiWatch: w, event: watch.Event{Type: c.kind, Object: c.object.DeepCopyObject()}}
	moment, strike := w.session.world.reach(eventVerb+strings.ToLower(string(c.kind)), c.id)
	if strike.event == nil {
		return d.send()
	}
	w.session.world.note("%s: %s meets %q", w.session.name, moment, strike.name)
	return strike.event(d)
}

func (d *delivery) send() bool { return d.sendCopy(d.event.Object) }

func (d *delivery) sendCopy(object runtime.Object) bool {
	select {
	case d.result <- watch.Event{Type: d.event.Type, Object: object}:
		return true
	case <-d.expired:
		d.sayExpired()
	case <-d.done.Done():
	}
	return false
}

func (w *apiWatch) sayExpired() {
	w.session.world.note("%s: watch of %s is told 410 Gone", w.session.name, w.resource)
	status := apierrors.NewResourceExpired("too old resource version").Status()
	select {
	case w.result <- watch.Event{Type: watch.Error, Object: &status}:
	case <-w.done.Done():
	}
}

func (w *apiWatch) waitWhileHeld() bool {
	return w.wait(func() time.Duration { return w.session.held(w.resource) })
}

// wait returns when nothing is left to wait for, or false if the watch has ended.
func (w *apiWatch) wait(left func() time.Duration) bool {
	for left() > 0 {
		select {
		case <-time.After(left()):
		case <-w.expired:
			w.sayExpired()
			return false
		case <-w.done.Done():
			return false
		}
	}
	return w.done.Err() == nil
}
