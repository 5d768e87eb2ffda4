// SPDX-License-Identifier: Apache-2.0

// Tests of causes and owners.

package timeline

import (
	"slices"
	"testing"
)

const none = -1

// causesIn returns the index of each entry's cause.
func causesIn(log *Log) []int {
	entries := log.ordered()
	ownersOf(entries).findCauses(entries)
	var got []int
	for _, e := range entries {
		got = append(got, slices.Index(entries, e.Cause))
	}
	return got
}

// TestCauses has what the recorded life of a Foo does not show.
func TestCauses(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   []int
	}{
		"a controller with a person's kubeconfig": {[]string{
			"0 alice create foos/web",
			"5 operator create deployments/web",
			"9 operator update foos.status/web",
		}, []int{none, 0, 0}},
		"a deletion by the garbage collector": {[]string{
			"0 alice delete foos/web",
			"5 gc delete deployments/web",
			"9 gc delete replicasets/web-1",
			"12 gc delete pods/web-1-x",
			"15 kubelet delete pods/web-1-x",
			"90000 gc delete pods/web-1-y",
		}, []int{none, 0, 1, 2, 3, 2}},
		"no deletion long after that of the owner": {[]string{
			"0 alice delete foos/web", "70000 deployment-controller update deployments.status/web",
		}, []int{none, none}},
		"a kubelet does not look at ReplicaSets": {[]string{
			"0 deployment-controller create replicasets/web-1",
			"1 replicaset-controller create pods/web-1-x",
			"2 deployment-controller update replicasets/web-1",
			"3 kubelet patch pods.status/web-1-x",
		}, []int{none, 0, 1, 1}},
		"a Pod replaces a deleted one": {[]string{
			"0 replicaset-controller update replicasets.status/web-1",
			"1 alice delete pods/web-1-x",
			"5 replicaset-controller create pods/",
			"9 scheduler create pods.binding/web-1-y",
		}, []int{none, none, 1, 2}},
		"a Pod replaces an evicted one": {[]string{
			"0 replicaset-controller update replicasets.status/web-1",
			"1 alice create pods.eviction/web-1-x",
			"5 replicaset-controller create pods/",
			"9 scheduler create pods.binding/web-1-y",
		}, []int{none, none, 1, 2}},
		"drift is reverted": {[]string{
			"0 alice create foos/web",
			"2 web-controller create deployments/web",
			"5000 bob patch deployments/web",
			"5010 web-controller update deployments/web",
		}, []int{none, 0, none, 2}},
		"a refused write has a cause and no effect": {[]string{
			"0 alice create foos/web",
			"5 x update foos.status/web 409",
			"9 web-controller create deployments/web 403",
			"12 deployment-controller create replicasets/web-1",
		}, []int{none, 0, 0, none}},
		"names with the same prefix": {[]string{
			"0 alice create foos/web",
			"10 bob create foos/web-2",
			"20 web-controller create deployments/web",
			"30 web-controller create deployments/web-2",
			"40 deployment-controller create replicasets/web-2-1",
			"50 deployment-controller create replicasets/web-1",
		}, []int{none, none, 0, 1, 3, 2}},
		"Pods that were there before": {[]string{
			"0 kubelet patch pods.status/old",
			"1 replicaset-controller create pods/b:",
			"2 replicaset-controller create pods/ 403",
			"3 replicaset-controller create pods/",
			"4 kubelet patch pods.status/old",
			"5 scheduler create pods.binding/new",
		}, []int{none, none, none, none, none, 3}},
		"too late": {[]string{"0 alice create foos/web", "70000 web-controller create deployments/web"}, []int{none, none}},
		"another namespace": {[]string{
			"0 alice create foos/a:web", "5 web-controller create deployments/b:web",
		}, []int{none, none}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := causesIn(logOf(test.writes...)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestOwnerReferencesTakePrecedenceOverNames(t *testing.T) {
	log := logOf("0 alice create foos/web", "1 alice create foos/other")
	for _, text := range []string{"10 web-controller create deployments/web", "20 web-controller create deployments/ 403"} {
		w := parseWrite(text)
		w.Request = ownedBy(foos.Group+"/v1alpha1", "Foo", "other")
		log.Add(w)
	}
	if got, want := causesIn(log), []int{none, none, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestOwnersThatAreNotWritten finds the Foo by owner references alone, and survives a cycle.
func TestOwnersThatAreNotWritten(t *testing.T) {
	var log Log
	for text, owner := range map[string][3]string{
		"0 x update replicasets/any":   {"apps/v1", "Deployment", "one"},
		"1 x update deployments/one":   {foos.Group + "/v1alpha1", "Foo", "web"},
		"2 x update bars/ring":         {"example.com/v1", "Bar", "ring"},
		"3 x update replicasets/other": {"apps/v1", "Deployment", "two"},
	} {
		w := parseWrite(text)
		w.Response = ownedBy(owner[0], owner[1], owner[2])
		log.Add(w)
	}
	if got := of(t, &log, "default", "web"); len(entriesOf(got)) != 2 || got.Title != "The life of Foo web in default" {
		t.Errorf("%s: %d entries", got.Title, len(entriesOf(got)))
	}
}
