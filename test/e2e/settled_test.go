// SPDX-License-Identifier: Apache-2.0

// Settled Foos cost no writes.

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
	// resyncs is the number of resyncs, 3 of each informer, a second apart.
	resyncs = 2 * 3
	// settledFoos is the number of Foos.
	settledFoos = 50
)

// TestSettledFoosCostNoWrites is not parallel, because on a development cluster its
// controller watches all namespaces, and the API server's metrics count the requests of
// all clients.
func TestSettledFoosCostNoWrites(t *testing.T) {
	places, flags := settledNamespaces(t)
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

	awaitNoTerminatingNamespaces(t)
	before, eventsBefore, writesBefore := allVersions(t, places), fooEvents(t, places), countWrites(t)
	const resynced = "Forcing resync"
	p.awaitLog(t, resynced, p.log.Count(resynced)+resyncs)
	p.stop(t)

	expectVersions(t, before, allVersions(t, places))
	if after := fooEvents(t, places); !maps.Equal(eventsBefore, after) {
		t.Errorf("Events were written: %v, before %v", after, eventsBefore)
	}
	if after := countWrites(t); !maps.Equal(writesBefore, after) {
		t.Errorf("The API server counted writes: %v, before %v", after, writesBefore)
	}
}

// awaitNoTerminatingNamespaces waits until the namespaces of earlier tests are gone,
// because their deletion causes writes, too.
func awaitNoTerminatingNamespaces(t *testing.T) {
	t.Helper()
	ofRun := metav1.ListOptions{LabelSelector: runLabel + "=" + cluster.run}
	awaitList(t, "no namespace is being deleted", cluster.kube.CoreV1().Namespaces(), ofRun, func(list *corev1.NamespaceList) error {
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp != nil {
				return fmt.Errorf("namespace %s is being deleted", list.Items[i].Name)
			}
		}
		return nil
	})
}

func settledName(i int) string { return fmt.Sprintf("settled-%d", i) }

// settledNamespaces returns the namespaces of the Foos, and the controller's flags for
// them. Except on a development cluster it is a single namespace.
func settledNamespaces(t *testing.T) ([]*namespace, []string) {
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

// countWrites returns the API server's count of writes to Foos and children, by
// resource. It returns nil except on a development cluster, because elsewhere others
// write, too.
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
		for _, resource := range []string{"foos", childResource} {
			if isWrite(line, resource) {
				counts[resource] += lastNumber(t, line)
			}
		}
	}
	if counts["foos"] == 0 || counts[childResource] == 0 {
		t.Fatalf("The API server counted %v, want some writes of both", counts)
	}
	return counts
}

// isWrite reports whether a line of metrics counts writes to a resource.
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
