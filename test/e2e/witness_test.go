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

package e2e

import (
	"context"
	"sync"
	"testing"

	"example.com/sample-controller/test/oracle"
)

// witness records what the namespace's Foos say, and fails the test if that was
// not true at any moment until it ends, or until stop is called: before a test
// that takes the definition away, which would break the record.
func (ns *namespace) witness(t *testing.T) (stop func()) {
	t.Helper()
	recording, err := oracle.Record(cluster.ctx, ns.in.kube, ns.in.foos, ns.name)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		defer recording.Stop()
		// A test's own context has ended when this is its last act.
		ctx, cancel := context.WithTimeout(cluster.ctx, cluster.patience())
		defer cancel()
		lies, err := recording.Lies(ctx)
		if err != nil {
			t.Errorf("What the Foos of %s have said is not known: %v", ns.name, err)
		}
		for _, lie := range lies {
			t.Errorf("Not true: %s", lie)
		}
	})
	t.Cleanup(stop)
	return stop
}
