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

package queue

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/reporting"
)

const (
	// firstRetry and lastRetry bound the exponential back-off of a key.
	firstRetry = 5 * time.Millisecond
	LastRetry  = 5 * time.Minute
	// refusedRetry is how long a refused write first waits for the quota, the
	// policy or the right to change, unless the Foo or its Deployment changes
	// before; doubled each time, up to lastRetry. Some refusals pass by
	// themselves: for half a minute after a definition is installed the API
	// server may not let its objects own others.
	RefusedRetry = 10 * time.Second
	// behindRetry is how soon a sync that its own writes held up is tried
	// again, should the event that it waits for not wake it.
	BehindRetry = time.Second
)

// attempt says when a key is tried again after a sync.
type attempt struct {
	// again is false where only a change of the objects can help.
	Again bool
	// after is the time until then; 0 means the key's exponential back-off.
	After time.Duration
	// slowly is for what was refused and would be again: its back-off begins
	// with refusedRetry.
	RefusalBackoff bool
	// held keys are not synced before then unless the Foo's spec or its Deployment
	// changes: neither a resync nor the Foo's own status wakes them.
	held bool
	// expected errors are everyday business (a lost race) and are not logged
	// as errors.
	Expected bool
}

// nextAttempt says what becomes of a key whose sync ended with err. It is the
// only place that judges errors.
func NextAttempt(err error) attempt {
	switch {
	case err == nil:
		return attempt{}
	case errors.Is(err, consistency.ErrStale):
		return attempt{Again: true, After: BehindRetry, Expected: true}
	case errors.Is(err, context.Canceled):
		// The controller is stopping.
		return attempt{Expected: true}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Nothing can be created there any more, and the Foo goes with its namespace.
		return attempt{Again: true, After: LastRetry, held: true, Expected: true}
	case errors.Is(err, reporting.ErrCRDMismatch):
		return attempt{Again: true, After: LastRetry, held: true}
	case plan.IsRefusal(err):
		return attempt{Again: true, RefusalBackoff: true, held: true}
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		// The cache was behind another's write; its event is on the way.
		return attempt{Again: true, Expected: true}
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return attempt{Again: true, After: min(time.Duration(seconds)*time.Second, LastRetry), held: true}
	}
	return attempt{Again: true, held: true}
}
