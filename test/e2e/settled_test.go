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
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	// resyncs is how many resyncs of both informers are looked on, a second apart.
	resyncs = 2 * 3
	// settledFoos is how many Foos are looked at.
	settledFoos = 50
)

// This test is not parallel, so that it runs alone: on a development cluster
// its controller looks after all namespaces, and the server's counters count
// everybody's requests.
func TestSettledFoosCostNoWrites(t *testing.T) {
	places, flags := settledPlaces(t)
	p := startController(t, append(flags, "-kubeconfig="+cluster.account.kubeconfig, "-resync=1s", "-v=4")...)
	for i := range settledFoos {
		places[i%len(places)].createFoo(t, newFoo(settledName(i), withReplicas(2)))
	}
	for i := range settledFoos {
		ns := places[i%len(places)]
		ns.awaitReady(t, settledName(i))
		awaitEvent(t, ns, settledName(i), corev1.EventTypeNormal, samplev1alpha1.ReasonAvailable)
	}
	for _, ns := range places {
		ns.awaitSettled(t)
	}

	awaitNoEndingNamespaces(t)
	before, eventsBefore, writesBefore := allVersions(t, places), fooEvents(t, places), countWrites(t)
	const resynced = "Forcing resync"
	p.awaitLog(t, resynced, p.log.Count(resynced)+resyncs)
	p.stop(t)

	expectVersions(t, before, allVersions(t, places))
	if after := fooEvents(t, places); !maps.Equal(eventsBefore, after) {
		t.Errorf("Events were written: %v, before %v", after, eventsBefore)
	}
	if after := countWrites(t); !maps.Equal(writesBefore, after) {
		t.Errorf("The API server has counted writes: %v, before %v", after, writesBefore)
	}
}

// awaitNoEndingNamespaces waits until what tests before this one have left is
// gone, for its end is writes, too.
func awaitNoEndingNamespaces(t *testing.T) {
	t.Helper()
	ofRun := metav1.ListOptions{LabelSelector: runLabel + "=" + cluster.run}
	awaitList(t, "no namespace is being deleted", cluster.kube.CoreV1().Namespaces(), ofRun, func(list *corev1.NamespaceList) error {
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp != nil {
				return fmt.Errorf("namespace %s is", list.Items[i].Name)
			}
		}
		return nil
	})
}

func settledName(i int) string { return fmt.Sprintf("settled-%d", i) }

// settledPlaces returns the namespaces to look at, and the controller's flags
// for them: on a cluster that is somebody else's only a namespace of our own.
func settledPlaces(t *testing.T) ([]*namespace, []string) {
	t.Helper()
	first := newNamespace(t)
	if !cluster.devcluster {
		return []*namespace{first}, []string{"-namespace=" + first.name}
	}
	return []*namespace{first, newNamespace(t)}, nil
}

func allVersions(t *testing.T, places []*namespace) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, ns := range places {
		maps.Copy(all, ns.versions(t))
	}
	return all
}

// fooEvents returns the resourceVersion of each event about a Foo.
func fooEvents(t *testing.T, places []*namespace) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, ns := range places {
		events, err := ns.events().List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Foo"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range events.Items {
			versions[ns.name+"/"+events.Items[i].Name] = events.Items[i].ResourceVersion
		}
	}
	return versions
}

// countWrites returns how many writes to Foos and Deployments, by resource,
// the API server has seen. On a cluster where others write too that says
// nothing, and it is empty.
func countWrites(t *testing.T) map[string]int {
	t.Helper()
	if !cluster.devcluster {
		return nil
	}
	text, err := cluster.kube.Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatalf("Reading the API server's metrics: %v", err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		for _, resource := range []string{"foos", "deployments"} {
			if isWrite(line, resource) {
				counts[resource] += lastNumber(t, line)
			}
		}
	}
	if counts["foos"] == 0 || counts["deployments"] == 0 {
		t.Fatalf("The API server has counted %v, which can't be right", counts)
	}
	return counts
}

// isWrite tells whether a line of metrics counts writes to a resource.
func isWrite(line, resource string) bool {
	if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `,resource="`+resource+`",`) {
		return false
	}
	for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"} {
		if strings.Contains(line, `,verb="`+verb+`"`) {
			return true
		}
	}
	return false
}

// lastNumber returns the value of a line of metrics.
func lastNumber(t *testing.T, line string) int {
	t.Helper()
	words := strings.Fields(line)
	value, err := strconv.ParseFloat(words[len(words)-1], 64)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return int(value)
}
