// SPDX-License-Identifier: Apache-2.0

// Tests of the rules of rows, by rows of the Deployment that break them.

package plan

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// TestBrokenRowsAreDetected checks that the rules of owned fields find rows that break
// them.
func TestBrokenRowsAreDetected(t *testing.T) {
	keep, setOwned := shipped.Keep, shipped.SetOwned
	for name, tt := range map[string]struct {
		breakRow func(row *Child[*appsv1.Deployment])
		want     string
	}{
		"Keep writes into what was found": {func(row *Child[*appsv1.Deployment]) {
			row.Keep = func(kept, found *appsv1.Deployment) {
				keep(kept, found)
				found.Spec.Replicas = nil
			}
		}, "an object that was only read has changed"},
		"Report writes into what was found": {func(row *Child[*appsv1.Deployment]) {
			row.Report = func(_ *samplev1alpha1.FooStatus, child *appsv1.Deployment) { child.Status.Replicas++ }
		}, "an object that was only read has changed"},
		"Keep drops an owned field": {func(row *Child[*appsv1.Deployment]) {
			row.Keep = func(kept, found *appsv1.Deployment) {
				keep(kept, found)
				kept.Spec.Replicas = nil
			}
		}, "by what the cache keeps update (spec.replicas is missing"},
		"Keep drops what Judge reads": {func(row *Child[*appsv1.Deployment]) {
			row.Keep = func(kept, found *appsv1.Deployment) {
				keep(kept, found)
				kept.Status.AvailableReplicas = 0
			}
		}, "it is ready: true, by what the cache keeps: false"},
		"SetOwned sets a field of others": {func(row *Child[*appsv1.Deployment]) {
			row.SetOwned = func(child *appsv1.Deployment, foo *samplev1alpha1.Foo, seen Seen) {
				setOwned(child, foo, seen)
				child.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
			}
		}, "fields of others are set"},
		"SetOwned forgets an owned field": {func(row *Child[*appsv1.Deployment]) {
			row.SetOwned = func(child *appsv1.Deployment, foo *samplev1alpha1.Foo, seen Seen) {
				replicas := child.Spec.Replicas
				setOwned(child, foo, seen)
				child.Spec.Replicas = replicas
			}
		}, "with the owned fields set it has"},
		"SetOwned never settles": {func(row *Child[*appsv1.Deployment]) {
			row.SetOwned = func(child *appsv1.Deployment, foo *samplev1alpha1.Foo, seen Seen) {
				setOwned(child, foo, seen)
				child.Spec.MinReadySeconds++
			}
		}, "setting the owned fields twice changes it twice"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := shipped
			tt.breakRow(&broken)
			var problems []string
			for _, seed := range footest.FuzzSeeds {
				problems = append(problems, rowOf(broken).owned(footest.NewFuzzWorld(t, seed.Script, seed.Noise, seed.Words))...)
			}
			if !slices.ContainsFunc(problems, func(problem string) bool { return strings.Contains(problem, tt.want) }) {
				t.Errorf("no problem contains %q:\n%s", tt.want, strings.Join(problems, "\n"))
			}
		})
	}
}
