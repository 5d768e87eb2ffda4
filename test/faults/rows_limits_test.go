// SPDX-License-Identifier: Apache-2.0

// Rows about load and limits: resyncs, quotas, lost events, many Foos, large objects.

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

// resyncFlags returns the flags for a controller that resyncs, and a time in which it
// does so at least twice.
func (tr *trial) resyncFlags() (flags []string, howLong time.Duration) {
	if tr.subject.resyncs {
		return nil, 65 * time.Second
	}
	return []string{"-resync=1s"}, 5 * time.Second
}

// atRest checks that Foos that need no change cause no writes, not even at a resync.
func atRest(writeCounts) []trialCase {
	return []trialCase{{"some resyncs", func(ctx context.Context, tr *trial) error {
		flags, howLong := tr.resyncFlags()
		if _, err := tr.start(flags...); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.createFoo(ctx, "b", "b", 1), tr.settled(ctx)); err != nil {
			return err
		}
		since := time.Now()
		pause(ctx, howLong)
		writes := 0
		for _, call := range tr.calls() {
			if call.Began.After(since) && call.IsWrite() {
				writes++
			}
		}
		if writes > 0 {
			return fmt.Errorf("nothing happens, and it writes: %d requests for two Foos in %v", writes, howLong)
		}
		return tr.stableAndQuiet(ctx)
	}}}
}

// exhaustedQuota is D11: a quota refuses a Deployment, and is raised.
func exhaustedQuota(writeCounts) []trialCase {
	return []trialCase{{"and raised", func(ctx context.Context, tr *trial) error {
		tr.timeout = 4 * waitTimeout // the back-off of a refused write grows to 5 minutes
		if _, err := tr.start(); err != nil {
			return err
		}
		quotas := tr.cluster.kube.CoreV1().ResourceQuotas(tr.ns)
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}}
		quota.Spec.Hard = corev1.ResourceList{"count/deployments.apps": resource.MustParse("1")}
		if _, err := quotas.Create(ctx, quota, metav1.CreateOptions{}); err != nil {
			return err
		}
		err := tr.await(ctx, "the quota is in force", func(ctx context.Context) error {
			found, err := quotas.Get(ctx, "few", metav1.GetOptions{})
			if err == nil && len(found.Status.Used) == 0 {
				err = errors.New("status.used is empty")
			}
			return err
		})
		if err != nil {
			return err
		}
		tr.refused["b"] = samplev1alpha1.ReasonDeploymentFailed
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx), tr.createFoo(ctx, "b", "b", 1), tr.settled(ctx)); err != nil {
			return err
		}
		delete(tr.refused, "b")
		quota.Spec.Hard["count/deployments.apps"] = resource.MustParse("9")
		_, err = quotas.Update(ctx, quota, metav1.UpdateOptions{})
		return errors.Join(err, tr.stableAndQuiet(ctx))
	}}}
}

// withoutEvents is F7: Events can't be written, and nothing waits for them.
func withoutEvents(writes writeCounts) []trialCase {
	return throughout(writes, func(r *replica) {
		r.proxy.Use(func(call *proxy.Call) proxy.Fault {
			if call.Resource == "events" {
				return proxy.Hang
			}
			return nil
		})
	})
}

// manyFoos is F5: as many Foos as a small control plane can take beside the other trials.
func manyFoos(writeCounts) []trialCase {
	return []trialCase{{"a hundred", func(ctx context.Context, tr *trial) error {
		tr.timeout = 6 * waitTimeout // upstream's client sends 5 requests a second
		r, err := tr.start()
		if err != nil {
			return err
		}
		const count = 100
		for i := range count {
			if err := tr.createFoo(ctx, fmt.Sprintf("a-%d", i), fmt.Sprintf("a-%d", i), 1); err != nil {
				return err
			}
		}
		r.process.crash()
		return tr.stableAndQuiet(ctx)
	}}}
}

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

// crashes are A1: the controller is killed before or after a write.
func crashes() []breakage {
	return []breakage{
		{"crash before", func(r *replica) (proxy.Fault, func()) { return proxy.Before("crash", r.process.crash), nil }},
		{"crash after", func(r *replica) (proxy.Fault, func()) { return proxy.After("crash", r.process.crash), nil }},
	}
}

// lostReplies are A2: a write is done, and its reply is lost.
func lostReplies() []breakage {
	return []breakage{{"reply lost", always(proxy.LoseReply)}}
}

// lateWrites are A3: a write is done long after the controller has repeated it.
func lateWrites() []breakage {
	return []breakage{{"delayed", func(*replica) (proxy.Fault, func()) {
		begin := make(chan struct{})
		return proxy.CutAndLater(begin), func() { close(begin) }
	}}}
}

// refusals are D1 to D3, for a single write.
func refusals() []breakage {
	return []breakage{
		{"409", always(proxy.Conflict)},
		{"429", always(proxy.TooMany)},
		{"500", always(proxy.Internal)},
		{"503", always(proxy.Unavailable)},
		{"401", always(proxy.Unauthorized)},
		{"reset", always(proxy.Cut)},
	}
}

func always(fault proxy.Fault) func(*replica) (proxy.Fault, func()) {
	return func(*replica) (proxy.Fault, func()) { return fault, nil }
}

// eachWrite makes a case of each write of each workload with each breakage.
func eachWrite(breakages func() []breakage) func(writeCounts) []trialCase {
	return func(writes writeCounts) []trialCase {
		var cases []trialCase
		for _, w := range passing(writes) {
			for write := 1; write <= writes[w.name]; write++ {
				for _, b := range breakages() {
					cases = append(cases, trialCase{
						name: fmt.Sprintf("%s, write %d, %s", w.name, write, b.name),
						run:  func(ctx context.Context, tr *trial) error { return w.runBroken(ctx, tr, b, write) },
					})
				}
			}
		}
		return cases
	}
}
