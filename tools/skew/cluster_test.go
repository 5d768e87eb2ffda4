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
	"reflect"
	"testing"
)

func TestDevclusterSaysWhatItEmulates(t *testing.T) {
	got, err := parseVersions("Kubernetes  v1.37.0\netcd        v3.7.0\nEmulates    1.34 1.35 1.36 1.37\n")
	want := versions{kubernetes: "v1.37.0", emulated: []string{"1.34", "1.35", "1.36", "1.37"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	if got.newest() != "1.37" {
		t.Errorf("the newest is %s", got.newest())
	}
	if got, err := parseVersions("Kubernetes  v1.37.0\n"); err == nil {
		t.Errorf("of an older devcluster: %+v", got)
	}
}

const someAnswers = `# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
kubernetes_feature_enabled{name="WatchList",stage="BETA"} 1
kubernetes_feature_enabled{name="APIServingWithRoutine",stage="ALPHA"} 0
kubernetes_feature_enabled{name="AllowUnsafe",stage=""} 1
apiserver_requests{verb="true"} 1
bindings                                      v1                                true         Binding
componentstatuses                   cs        v1                                false        ComponentStatus
deployments                         deploy    apps/v1                           true         Deployment
validatingadmissionpolicies                   admissionregistration.k8s.io/v1   false        ValidatingAdmissionPolicy
deployments                         deploy    apps/v1beta1                      true         Deployment
`

func TestAbilitiesAreReadFromAnAPIServersAnswers(t *testing.T) {
	want := abilities{
		features:  []string{"AllowUnsafe", "WatchList"},
		resources: []string{"bindings", "componentstatuses", "deployments", "validatingadmissionpolicies"},
	}
	if got := parseAbilities(someAnswers); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhatIsAbsentIsSaid(t *testing.T) {
	newest := abilities{features: []string{"CRDObserved", "HPA", "PodsAPI", "WatchList"}, resources: []string{"deployments", "pods", "policies"}}
	for want, old := range map[string]abilities{
		"nothing": newest,
		"resources: none; features: 2, among them CRDObserved":                {features: []string{"Gone", "PodsAPI", "WatchList"}, resources: newest.resources},
		"resources: none; features: 1":                                        {features: []string{"CRDObserved", "PodsAPI", "WatchList"}, resources: newest.resources},
		"resources: pods, policies; features: 0":                              {features: newest.features, resources: []string{"deployments", "older"}},
		"resources: policies; features: 4, among them CRDObserved, WatchList": {resources: []string{"deployments", "pods"}},
	} {
		if got := old.lacks(newest); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
