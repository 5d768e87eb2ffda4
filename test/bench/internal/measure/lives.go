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

package measure

import (
	"context"
	"time"

	"example.com/sample-controller/internal/audit"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/devcluster"
)

// lives are what happened to Foos, by the API server's own clock: nothing that
// this process does delays it.
type lives map[string]*life

type life struct {
	// acknowledged is when the creation of the Foo was answered, created and
	// status when that of its Deployment and of its first status was.
	acknowledged, created, status time.Time
}

// follow reads an audit log until each of the Foos has its status, or until
// patience ends.
func follow(ctx context.Context, log *audit.Log, foos []*samplev1alpha1.Foo, patience time.Duration) (lives, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(auditInterval)
	defer ticker.Stop()
	l := lives{}
	for _, foo := range foos {
		l[foo.Namespace+"/"+foo.Name] = &life{}
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
			return l, nil // what is missing is told
		}
	}
}

// add takes up writes. A Foo's Deployment has the Foo's name.
func (l lives) add(writes []audit.Write) {
	for _, write := range writes {
		life, ours := l[write.Namespace+"/"+write.Name]
		if !ours || !write.OK() {
			continue
		}
		measured := write.User == devcluster.User
		switch {
		case write.Path() == "foos" && write.Verb == "create":
			life.acknowledged = write.Done
		case measured && write.Path() == "deployments" && write.Verb == "create":
			life.created = write.Done
		case measured && write.Path() == "foos/status" && life.status.IsZero():
			life.status = write.Done
		}
	}
}

func (l lives) complete() bool {
	for _, life := range l {
		if life.acknowledged.IsZero() || life.created.IsZero() || life.status.IsZero() {
			return false
		}
	}
	return true
}

// latencies are the times from a Foo's acknowledgement to its Deployment and to
// its status; missing is how many Foos have none.
func (l lives) latencies() (created, status []time.Duration, missing int) {
	for _, life := range l {
		if life.acknowledged.IsZero() || life.created.IsZero() || life.status.IsZero() {
			missing++
			continue
		}
		// A controller may be told of a Foo before its creator is.
		created = append(created, max(0, life.created.Sub(life.acknowledged)))
		status = append(status, max(0, life.status.Sub(life.acknowledged)))
	}
	return created, status, missing
}
