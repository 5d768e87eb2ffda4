// SPDX-License-Identifier: Apache-2.0

// Rows D14, D15 and G7: objects as large, and names as long, as the API server accepts.

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/test/faults/proxy"
)

// maxAnnotations is how many annotations of 1 KiB an object may have: 256 KiB in total.
const maxAnnotations = 256

// bigAnnotations returns annotations of 1 KiB each, key included.
func bigAnnotations(count int) map[string]string {
	annotations := map[string]string{}
	for i := range count {
		key := fmt.Sprintf("somebody/%03d", i)
		annotations[key] = strings.Repeat("x", 1024-len(key))
	}
	return annotations
}

// fullObjects is D14: other writers have filled a Foo and its Deployment with
// annotations.
func fullObjects(writeCounts) []trialCase {
	return []trialCase{{"of annotations", func(ctx context.Context, tr *trial) error {
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.patchFoo(ctx, "a", annotating(bigAnnotations(maxAnnotations)))); err != nil {
			return err
		}
		if _, err := tr.startExempt(); err != nil {
			return err
		}
		if err := tr.settled(ctx); err != nil {
			return err
		}
		// The Deployment controller copies the annotations to the ReplicaSet, and adds
		// its own.
		theirs := bigAnnotations(maxAnnotations - 1)
		if err := tr.patchDeployment(ctx, "a", annotating(theirs)); err != nil {
			return err
		}
		tr.protected = append(tr.protected, protected{deployment: "a", changed: func(now *appsv1.Deployment) error {
			for key, value := range theirs {
				if now.Annotations[key] != value {
					return errors.New("annotations that somebody else put on Deployment a are gone")
				}
			}
			return nil
		}})
		return errors.Join(tr.settled(ctx), tr.scaleFoo(ctx, "a", 3), tr.stableAndQuiet(ctx))
	}}}
}

const (
	// largeFoos is a number of Foos of 256 KiB, 50 MiB in all.
	largeFoos = 200
	// largestPeak is less than a controller takes, in KiB, that has them in memory all at
	// once, and more than one that trims each as it arrives.
	largestPeak = 120 << 10
)

// interruptedStream is D15: after a restart, the streams that fill the caches fail at
// first, and the Foos are large.
func interruptedStream(writeCounts) []trialCase {
	return []trialCase{{"unavailable", func(ctx context.Context, tr *trial) error {
		r, err := tr.startExempt()
		if err := errors.Join(err, tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
			return err
		}
		r.process.kill()
		annotations := annotating(bigAnnotations(maxAnnotations))
		for i := range largeFoos {
			name := fmt.Sprintf("large-%d", i)
			if err := errors.Join(tr.createFoo(ctx, name, "a", 1), tr.patchFoo(ctx, name, annotations)); err != nil {
				return err
			}
		}
		r.proxy.Use(times(2, func(call *proxy.Call) proxy.Fault {
			if call.Resource == "foos" && strings.Contains(call.Path, "sendInitialEvents") {
				return proxy.Unavailable
			}
			return nil
		}))
		if err := errors.Join(r.process.start(), tr.stableAndQuiet(ctx)); err != nil {
			return err
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.current().ID()))
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		var kib int
		if _, scanErr := fmt.Sscan(peak, &kib); err != nil || scanErr != nil {
			return errors.Join(err, scanErr)
		}
		if kib > largestPeak {
			return fmt.Errorf("it took %d MiB of memory for %d Foos of 256 KiB, as if it had had all of them at once", kib>>10, largeFoos)
		}
		return nil
	}}}
}

// longOwner is G7: the owner of the Deployment has a kind and a name that are longer than
// any message. The API server validates neither.
func longOwner(writeCounts) []trialCase {
	const long = 40_000
	return []trialCase{{"of 40,000 characters", func(ctx context.Context, tr *trial) error {
		if _, err := tr.startExempt(); err != nil {
			return err
		}
		err := tr.createForeign(ctx, "a", ownedBy(strings.Repeat("n", long), "00000000-0000-0000-0000-000000000001"), func(d *appsv1.Deployment) {
			d.OwnerReferences[0].APIVersion, d.OwnerReferences[0].Kind = "faults.example.com/v1", strings.Repeat("K", long)
		})
		return errors.Join(err, tr.createFoo(ctx, "a", "a", 3), tr.stableAndQuiet(ctx), tr.checkMessage(ctx, "a", `Deployment "a"`))
	}}}
}

// annotating returns a patch that sets annotations.
func annotating(annotations map[string]string) string {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		panic(err) // strings can always be written as JSON
	}
	return string(patch)
}
