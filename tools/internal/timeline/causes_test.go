// SPDX-License-Identifier: Apache-2.0

// Tests of causes.

package timeline

import (
	"slices"
	"testing"

	"example.com/sample-controller/test/audit"
)

// causesIn returns the index of each step's cause. It adds 100 if the cause is guessed.
func causesIn(steps []step) []int {
	var got []int
	for _, s := range steps {
		cause := s.cause
		if s.guessed {
			cause += 100
		}
		got = append(got, cause)
	}
	return got
}

func TestCauses(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   []int
	}{
		"a new Foo": {[]string{
			"0 alice create foos/web",
			"5 web-controller create deployments/web",
			"9 web-controller update foos.status/web",
			"12 deployment-controller create replicasets/web-1",
			"15 deployment-controller update deployments.status/web",
			"20 replicaset-controller create pods/",
			"25 scheduler create pods.binding/web-1-x",
			"30 kubelet patch pods.status/web-1-x",
			"35 replicaset-controller update replicasets.status/web-1",
			"40 deployment-controller update deployments.status/web",
			"45 web-controller update foos.status/web",
		}, []int{none, 0, 0, 1, 1, 3, 5, 6, 7, 8, 9}},
		"a deletion by the garbage collector": {[]string{
			"0 alice delete foos/web",
			"5 gc delete deployments/web",
			"9 gc delete replicasets/web-1",
			"12 gc delete pods/web-1-x",
			"15 kubelet delete pods/web-1-x",
			"90000 gc delete pods/web-1-y",
		}, []int{none, 0, 1, 2, 3, 2}},
		"a Pod replaces a deleted one": {[]string{
			"0 replicaset-controller update replicasets.status/web-1",
			"1 alice delete pods/web-1-x",
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
		"names without the owner's": {[]string{
			"0 alice create foos/a",
			"1 alice create foos/b",
			"10 web-controller create deployments/one",
			"20 web-controller create deployments/two",
			"30 deployment-controller update deployments.status/one",
			"40 web-controller update foos.status/a",
		}, []int{none, none, 100, 101, 2, 4}},
		"too late": {[]string{"0 alice create foos/web", "70000 web-controller create deployments/web"}, []int{none, none}},
		"another namespace": {[]string{
			"0 alice create foos/a:web", "5 web-controller create deployments/b:web",
		}, []int{none, none}},
		"a deleted namespace": {[]string{
			"0 alice delete namespaces/n:n", "5 namespace-controller deletecollection pods/n:", "9 kubelet delete pods/n:x",
		}, []int{none, 0, 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			log := logOf(test.writes...)
			log.Add(parseWrite("0 web-controller create events/x"))
			if got := causesIn(log.steps()); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestOwnerReferencesTakePrecedenceOverNames(t *testing.T) {
	var log Log
	for _, text := range []string{"0 alice create foos/web", "1 alice create foos/other", "10 web-controller create deployments/web"} {
		log.Add(parseWrite(text))
	}
	log.writes[2].Body = &audit.Body{Kind: "Deployment", Owners: []audit.Owner{{Kind: "Foo", Name: "other"}}}
	if got := causesIn(log.steps()); !slices.Equal(got, []int{none, none, 1}) {
		t.Errorf("got %v", got)
	}
}

func TestGiveNames(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   []string
	}{
		"by the order of bindings": {[]string{
			"0 x create pods/", "1 x create pods/", "2 kubelet patch pods.status/old",
			"3 scheduler create pods.binding/a", "4 scheduler create pods.binding/b",
		}, []string{"a", "b", "old", "a", "b"}},
		"a name that occurred before": {[]string{
			"0 kubelet patch pods.status/old", "1 x create pods/", "2 kubelet patch pods.status/old",
		}, []string{"old", "", "old"}},
		"no name from a deletion":         {[]string{"0 x create pods/", "1 gc delete pods/old"}, []string{"", "old"}},
		"no name from another namespace":  {[]string{"0 x create pods/", "1 scheduler create pods.binding/b:y"}, []string{"", "y"}},
		"a refused create":                {[]string{"0 x create pods/ 403", "1 scheduler create pods.binding/y"}, []string{"", "y"}},
		"without a scheduler, by updates": {[]string{"0 x create bars/", "1 x update bars.status/y"}, []string{"y", "y"}},
	}
	for name, test := range tests {
		var got []string
		for _, s := range logOf(test.writes...).steps() {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestKindOf(t *testing.T) {
	for resource, want := range map[string]string{
		"foos": "Foo", "pods": "Pod", "replicasets": "ReplicaSet", "networkpolicies": "NetworkPolicy", "ingresses": "Ingress",
		"endpoints": "Endpoints", "gateways": "Gateway", "gatewayclasses": "Gatewayclass", "proxies": "Proxy", "": "object",
	} {
		if got := kindOf(audit.Write{Resource: resource}); got != want {
			t.Errorf("%s: got %s, want %s", resource, got, want)
		}
	}
	if got := kindOf(audit.Write{Resource: "tlsroutes", Body: &audit.Body{Kind: "TLSRoute"}}); got != "TLSRoute" {
		t.Errorf("got %s, want the kind of the body", got)
	}
}
