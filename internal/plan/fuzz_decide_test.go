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

// FuzzDecide: decisions and statuses for arbitrary objects.

package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// controlled returns the Deployments that the index has for the Foo, as a sync reads
// them.
func controlled(t *testing.T, w *footest.FuzzWorld) []*appsv1.Deployment {
	t.Helper()
	var controlled []*appsv1.Deployment
	buckets := NewBuckets()
	for _, deployment := range w.Deployments {
		values := buckets.ByControllerUID(deployment)
		if slices.Contains(values, buckets.Of(string(w.Foo.UID))) && IsControlledBy(deployment, w.Foo) {
			controlled = append(controlled, deployment)
		}
	}
	return controlled
}

// FuzzDecide decides and calculates the status for arbitrary objects. A decision changes
// nothing of others, and after it nothing is left to do. The API server accepts the
// status, and calculating it again does not change it.
func FuzzDecide(f *testing.F) {
	footest.AddSeeds(f, footest.FuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		w := footest.NewFuzzWorld(t, script, noise, words)
		before := copyOf(w)

		decided := shipped.Decide(w.Foo, w.Named(), controlled(t, w), nil)
		checkDecision(t, w, decided)
		status := statusAfter(w.Foo, outcomeOf(w, decided), footest.Now)
		footest.CheckStatus(t, w.Foo, status)
		footest.ExpectEqual(t, "the Foo that was read", before.Foo, w.Foo)
		footest.ExpectEqual(t, "the list of Deployments that was read", before.Deployments, w.Deployments)

		checkSettles(t, w, decided, status)
	})
}

func copyOf(w *footest.FuzzWorld) *footest.FuzzWorld {
	same := &footest.FuzzWorld{Foo: w.Foo.DeepCopy()}
	for _, deployment := range w.Deployments {
		same.Deployments = append(same.Deployments, deployment.DeepCopy())
	}
	return same
}

// checkDecision fails if a decision would write a Deployment that it may not.
func checkDecision(t *testing.T, w *footest.FuzzWorld, decided decision) {
	t.Helper()
	named := w.Named()
	switch decided.Action {
	case ActionCreate:
		if named != nil {
			t.Errorf("a Deployment that exists is created")
		}
		footest.CheckWanted(t, newDeployment(w.Foo), w.Foo)
	case ActionNone:
		footest.CheckWanted(t, named, w.Foo)
	case ActionUpdate:
		if !footest.BelongsTo(named, w.Foo) || named.DeletionTimestamp != nil {
			t.Errorf("a Deployment is updated that the Foo does not control")
		}
		checkUpdate(t, w)
	case ActionAdopt:
		if !footest.HandedOverTo(named, w.Foo) {
			t.Errorf("a Deployment is adopted that does not ask for it")
		}
		checkUpdate(t, w)
	}
	wrote := decided.Action == ActionCreate || decided.Action == ActionUpdate || decided.Action == ActionAdopt
	if w.Foo.DeletionTimestamp != nil && (wrote || len(decided.Obsolete) > 0) {
		t.Errorf("a Foo that is being deleted causes writes: %s, and %d deletions", decided.Action, len(decided.Obsolete))
	}
	for _, deployment := range decided.Obsolete {
		if !footest.BelongsTo(deployment, w.Foo) || deployment.Name == w.Foo.Spec.DeploymentName || deployment.DeletionTimestamp != nil {
			t.Errorf("Deployment %s may not be deleted", deployment.Name)
		}
		if !wrote && !footest.BelongsTo(named, w.Foo) {
			t.Errorf("Deployment %s is deleted while the Foo has no other", deployment.Name)
		}
	}
}

// checkUpdate fails if the update of a Deployment does not make it what the Foo asks for,
// or changes more.
func checkUpdate(t *testing.T, w *footest.FuzzWorld) {
	t.Helper()
	named := w.Named()
	desired := shipped.DesiredUpdate(named, w.Foo, nil)
	if desired == nil {
		t.Fatal("the decision is an update, but there is nothing to update")
	}
	if desired.ResourceVersion != named.ResourceVersion || desired.UID != named.UID {
		t.Errorf("the update does not carry the UID and resourceVersion of the Deployment")
	}
	footest.CheckWanted(t, desired, w.Foo)
	footest.CheckOthersKept(t, named, desired, w.Foo)
}

// outcomeOf returns the outcome of a sync that carries out a decision. The API server
// refuses the writes for a Foo with an invalid spec, and its message contains the words.
func outcomeOf(w *footest.FuzzWorld, decided decision) result {
	result := result{Action: decided.Action, Named: decided.Named}
	if decided.Named != nil && IsControlledBy(decided.Named, w.Foo) {
		result.Child = decided.Named
	}
	if w.Refused() {
		if decided.Action == ActionCreate || decided.Action == ActionUpdate || decided.Action == ActionAdopt {
			result.Failure = apierrors.NewForbidden(footest.DeploymentsGR, string(decided.Action), errors.New(w.Words))
		}
		return result
	}
	switch decided.Action {
	case ActionCreate:
		result.Child = newDeployment(w.Foo)
	case ActionUpdate, ActionAdopt:
		result.Child = shipped.DesiredUpdate(w.Named(), w.Foo, nil)
	}
	return result
}

// checkSettles fails if, after a decision was carried out and reported, there is still
// something to do or to report.
func checkSettles(t *testing.T, w *footest.FuzzWorld, decided decision, status samplev1alpha1.FooStatus) {
	t.Helper()
	result := outcomeOf(w, decided)
	later := metav1.NewTime(footest.Now.Add(1))
	after := &footest.FuzzWorld{Foo: w.Foo.DeepCopy()}
	after.Foo.Status = status
	footest.ExpectEqual(t, "the status when nothing has happened since", status, statusAfter(after.Foo, result, later))
	if result.Failure != nil {
		return
	}
	if result.Child != nil {
		after.Deployments = append(after.Deployments, result.Child)
	}
	for _, deployment := range w.Deployments {
		gone := false
		for _, obsolete := range decided.Obsolete {
			gone = gone || obsolete == deployment
		}
		if !gone && after.Find(deployment.Name) == nil {
			after.Deployments = append(after.Deployments, deployment)
		}
	}
	again := shipped.Decide(after.Foo, after.Named(), controlled(t, after), nil)
	if again.Action == ActionCreate || again.Action == ActionUpdate || again.Action == ActionAdopt || len(again.Obsolete) > 0 {
		t.Errorf("after %s the next decision is %s, and %d deletions", decided.Action, again.Action, len(again.Obsolete))
	}
	for _, deployment := range controlled(t, after) {
		if has := result.Child; has != nil && has.DeletionTimestamp == nil && after.Foo.DeletionTimestamp == nil &&
			deployment != has && deployment.DeletionTimestamp == nil {
			t.Errorf("Deployment %s is left over", deployment.Name)
		}
	}
	footest.ExpectEqual(t, "the status after a second look", status, statusAfter(after.Foo, outcomeOf(after, again), later))
}

// TestFuzzSeedsReachEveryDecisionAndReason checks that the seeds cover what they claim
// to.
func TestFuzzSeedsReachEveryDecisionAndReason(t *testing.T) {
	missing := map[string]bool{
		"none": true, "create": true, "update": true, "adopt": true, "leave": true, "wait": true, "obsolete": true,
		"Available": true, "Progressing": true, "DeploymentConflict": true, "DeploymentFailed": true, "Terminating": true,
	}
	for _, seed := range footest.FuzzSeeds {
		w := footest.NewFuzzWorld(t, seed.Script, seed.Noise, seed.Words)
		decided := shipped.Decide(w.Foo, w.Named(), controlled(t, w), nil)
		status := statusAfter(w.Foo, outcomeOf(w, decided), footest.Now)
		delete(missing, string(decided.Action))
		delete(missing, footest.ReadyOf(status).Reason)
		if len(decided.Obsolete) > 0 {
			delete(missing, "obsolete")
		}
	}
	var left []string
	for what := range missing {
		left = append(left, what)
	}
	if len(left) > 0 {
		t.Errorf("no seed leads to: %s", strings.Join(left, ", "))
	}
}
