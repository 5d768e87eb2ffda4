// SPDX-License-Identifier: Apache-2.0

// How the cluster runs a Job.

package e2e

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func checkJob(t *testing.T, ns *namespace) {
	const completions, parallelism = 5, 2
	// Start the watch before the Job exists, so that it sees each Pod.
	none, err := ns.pods().List(t.Context(), ofWorkload("job"))
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := ns.pods().Watch(t.Context(), metav1.ListOptions{
		LabelSelector: ofWorkload("job").LabelSelector, ResourceVersion: none.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	jobs := cluster.kube.BatchV1().Jobs(ns.name)
	if _, err := jobs.Create(t.Context(), newJob("job", completions, parallelism), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	active, succeeded := map[string]bool{}, map[string]bool{}
	for len(succeeded) < completions {
		event := nextEvent(t, watcher)
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("The watch ended with %v", event)
		}
		delete(active, pod.Name)
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			succeeded[pod.Name] = true
		case event.Type != watch.Deleted && pod.Status.Phase != corev1.PodFailed:
			active[pod.Name] = true
		}
		if len(active) > parallelism {
			t.Errorf("%d Pods run at once: %v", len(active), active)
		}
	}
	awaitOne(t, "the Job is complete", jobs, "job", func(job *batchv1.Job) error { return isComplete(job, completions) })
}

// newJob returns a Job whose Pods complete at once.
func newJob(name string, completions, parallelism int32) *batchv1.Job {
	template := templateOf(name)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	template.Spec.Containers = []corev1.Container{{Name: "work", Image: "busybox:stable", Command: []string{"true"}}}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{Completions: &completions, Parallelism: &parallelism, Template: template},
	}
}

func isComplete(job *batchv1.Job, completions int32) error {
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue && job.Status.Succeeded == completions {
			return nil
		}
	}
	return fmt.Errorf("%d Pods have succeeded", job.Status.Succeeded)
}
