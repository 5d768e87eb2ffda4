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
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// controlled returns the Deployments of a world that the index has for the Foo, as
// a sync reads them.
func controlled(t *testing.T, w *fuzzWorld) []*appsv1.Deployment {
	t.Helper()
	var controlled []*appsv1.Deployment
	buckets := newBuckets()
	for _, deployment := range w.deployments {
		values, err := buckets.byControllerUID(deployment)
		must(t, err)
		if slices.Contains(values, buckets.of(string(w.foo.UID))) && isControlledBy(deployment, w.foo) {
			controlled = append(controlled, deployment)
		}
	}
	return controlled
}

// FuzzDecide gives deciding and reporting any Foo with any Deployments. What is
// decided touches nothing of others, and leads to where nothing is left to
// decide; the status is one that the API server takes, and says it once.
func FuzzDecide(f *testing.F) {
	addSeeds(f, fuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		w := newFuzzWorld(t, script, noise, words)
		before := copyOf(w)

		decided := shipped.decide(w.foo, w.named(), controlled(t, w))
		checkDecision(t, w, decided)
		status := shipped.calculateStatus(w.foo, outcomeOf(w, decided), now)
		checkStatus(t, w.foo, status)
		expectEqual(t, "the Foo that was read", before.foo, w.foo)
		expectEqual(t, "the list of Deployments that was read", before.deployments, w.deployments)

		checkSettles(t, w, decided, status)
	})
}

func copyOf(w *fuzzWorld) *fuzzWorld {
	same := &fuzzWorld{foo: w.foo.DeepCopy()}
	for _, deployment := range w.deployments {
		same.deployments = append(same.deployments, deployment.DeepCopy())
	}
	return same
}

// checkDecision fails if a decision would touch what is not the Foo's.
func checkDecision(t *testing.T, w *fuzzWorld, decided decision) {
	t.Helper()
	named := w.named()
	switch decided.action {
	case actionCreate:
		if named != nil {
			t.Errorf("a Deployment is created that is there")
		}
		checkWanted(t, shipped.newDeployment(w.foo), w.foo)
	case actionNone:
		checkWanted(t, named, w.foo)
	case actionUpdate:
		if !belongsTo(named, w.foo) || named.DeletionTimestamp != nil {
			t.Errorf("a Deployment is updated that is not the Foo's to update")
		}
		checkUpdate(t, w)
	case actionAdopt:
		if !handedOverTo(named, w.foo) {
			t.Errorf("a Deployment is adopted that nobody has handed over")
		}
		checkUpdate(t, w)
	}
	wrote := decided.action == actionCreate || decided.action == actionUpdate || decided.action == actionAdopt
	if w.foo.DeletionTimestamp != nil && (wrote || len(decided.surplus) > 0) {
		t.Errorf("something is written for a Foo that is being deleted: %s, and %d deletions", decided.action, len(decided.surplus))
	}
	for _, deployment := range decided.surplus {
		if !belongsTo(deployment, w.foo) || deployment.Name == w.foo.Spec.DeploymentName || deployment.DeletionTimestamp != nil {
			t.Errorf("Deployment %s is not the Foo's to delete", deployment.Name)
		}
		if !wrote && !belongsTo(named, w.foo) {
			t.Errorf("Deployment %s is deleted while the Foo has no other", deployment.Name)
		}
	}
}

// checkUpdate fails if the update of a Deployment that is live as it was found
// would not make it what the Foo asks for, or would change more.
func checkUpdate(t *testing.T, w *fuzzWorld) {
	t.Helper()
	named := w.named()
	desired := shipped.desiredUpdate(named, w.foo)
	if desired == nil {
		t.Fatal("an update is decided, and none is made")
	}
	if desired.ResourceVersion != named.ResourceVersion || desired.UID != named.UID {
		t.Errorf("the update does not say which Deployment it was made from")
	}
	checkWanted(t, desired, w.foo)
	checkOthersKept(t, named, desired, w.foo)
}

// outcomeOf is what a sync that carries out a decision comes to. Of the writes,
// the API server refuses those of a Foo with a bad spec, and quotes the words.
func outcomeOf(w *fuzzWorld, decided decision) outcome {
	result := outcome{action: decided.action, named: decided.named}
	if decided.named != nil && isControlledBy(decided.named, w.foo) {
		result.deployment = decided.named
	}
	if w.refused() {
		if decided.action == actionCreate || decided.action == actionUpdate || decided.action == actionAdopt {
			result.failure = apierrors.NewForbidden(deploymentsGR, string(decided.action), errors.New(w.words))
		}
		return result
	}
	switch decided.action {
	case actionCreate:
		result.deployment = shipped.newDeployment(w.foo)
	case actionUpdate, actionAdopt:
		result.deployment = shipped.desiredUpdate(w.named(), w.foo)
	}
	return result
}

// checkSettles fails if, once a decision has been carried out and told, there is
// something left to do or to tell.
func checkSettles(t *testing.T, w *fuzzWorld, decided decision, status samplev1alpha1.FooStatus) {
	t.Helper()
	result := outcomeOf(w, decided)
	later := metav1.NewTime(now.Add(1))
	after := &fuzzWorld{foo: w.foo.DeepCopy()}
	after.foo.Status = status
	expectEqual(t, "the status when nothing has happened since", status, shipped.calculateStatus(after.foo, result, later))
	if result.failure != nil {
		return
	}
	if result.deployment != nil {
		after.deployments = append(after.deployments, result.deployment)
	}
	for _, deployment := range w.deployments {
		gone := false
		for _, surplus := range decided.surplus {
			gone = gone || surplus == deployment
		}
		if !gone && after.find(deployment.Name) == nil {
			after.deployments = append(after.deployments, deployment)
		}
	}
	again := shipped.decide(after.foo, after.named(), controlled(t, after))
	if again.action == actionCreate || again.action == actionUpdate || again.action == actionAdopt || len(again.surplus) > 0 {
		t.Errorf("after %s comes %s, and %d deletions", decided.action, again.action, len(again.surplus))
	}
	for _, deployment := range controlled(t, after) {
		if has := result.deployment; has != nil && has.DeletionTimestamp == nil && after.foo.DeletionTimestamp == nil &&
			deployment != has && deployment.DeletionTimestamp == nil {
			t.Errorf("Deployment %s is left over", deployment.Name)
		}
	}
	expectEqual(t, "the status after a second look", status, shipped.calculateStatus(after.foo, outcomeOf(after, again), later))
}

// TestFuzzSeedsReachEveryDecisionAndReason keeps the seeds worth their while.
func TestFuzzSeedsReachEveryDecisionAndReason(t *testing.T) {
	missing := map[string]bool{
		"none": true, "create": true, "update": true, "adopt": true, "leave": true, "wait": true, "surplus": true,
		"Available": true, "Progressing": true, "DeploymentConflict": true, "DeploymentFailed": true, "Terminating": true,
	}
	for _, seed := range fuzzSeeds {
		w := newFuzzWorld(t, seed.script, seed.noise, seed.words)
		decided := shipped.decide(w.foo, w.named(), controlled(t, w))
		status := shipped.calculateStatus(w.foo, outcomeOf(w, decided), now)
		delete(missing, string(decided.action))
		delete(missing, readyOf(status).Reason)
		if len(decided.surplus) > 0 {
			delete(missing, "surplus")
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
