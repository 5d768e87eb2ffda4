// SPDX-License-Identifier: Apache-2.0

// Timelines: when the API server acknowledged the writes for each Foo, from its audit
// log.

package measure

import (
	"context"
	"time"

	"example.com/sample-controller/internal/audit"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/devcluster"
)

// timelines holds the timeline of each Foo. All times are the API server's, so that no
// delay in this process counts.
type timelines map[string]*timeline

type timeline struct {
	// acknowledged, created and status are when the API server answered the creation of
	// the Foo, the creation of its Deployment, and its first status.
	acknowledged, created, status time.Time
}

// readTimelines reads an audit log until each of the Foos has a status, or until the
// timeout.
func readTimelines(ctx context.Context, log *audit.Log, foos []*samplev1alpha1.Foo, timeout time.Duration) (timelines, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(auditInterval)
	defer ticker.Stop()
	l := timelines{}
	for _, foo := range foos {
		l[foo.Namespace+"/"+foo.Name] = &timeline{}
	}
	for {
		writes, err := log.Next()
		if err != nil {
			return nil, err
		}
		l.add(writes)
		if l.complete() {
			return l, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return l, nil // latencies counts the missing ones
		}
	}
}

// add adds writes. A Deployment has the name of its Foo.
func (l timelines) add(writes []audit.Write) {
	for _, write := range writes {
		timeline, ours := l[write.Namespace+"/"+write.Name]
		if !ours || !write.OK() {
			continue
		}
		measured := write.User == devcluster.User
		switch {
		case write.Path() == "foos" && write.Verb == "create":
			timeline.acknowledged = write.Done
		case measured && write.Path() == "deployments" && write.Verb == "create":
			timeline.created = write.Done
		case measured && write.Path() == "foos/status" && timeline.status.IsZero():
			timeline.status = write.Done
		}
	}
}

func (l timelines) complete() bool {
	for _, timeline := range l {
		if timeline.acknowledged.IsZero() || timeline.created.IsZero() || timeline.status.IsZero() {
			return false
		}
	}
	return true
}

// latencies returns the times from a Foo's acknowledgement to its Deployment and to its
// status, and how many Foos lack one of them.
func (l timelines) latencies() (created, status []time.Duration, missing int) {
	for _, timeline := range l {
		if timeline.acknowledged.IsZero() || timeline.created.IsZero() || timeline.status.IsZero() {
			missing++
			continue
		}
		// A controller may receive a Foo before its creator gets the answer.
		created = append(created, max(0, timeline.created.Sub(timeline.acknowledged)))
		status = append(status, max(0, timeline.status.Sub(timeline.acknowledged)))
	}
	return created, status, missing
}
