// SPDX-License-Identifier: Apache-2.0

// Tests of the chart's values.

package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
)

func TestInvalidValuesAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		"replica: 1":                                 "'replica' not allowed",
		"replicas: null":                             "missing property 'replicas'",
		"image: {repository: ''}":                    "at '/image/repository': minLength",
		"image: {digest: 'sha256:1'}":                "at '/image/digest'",
		"image: {pullPolicy: Sometimes}":             "at '/image/pullPolicy': value must be one of",
		"imagePullSecrets: [key]":                    "at '/imagePullSecrets/0': got string, want object",
		"nodeSelector: {disk: 1}":                    "at '/nodeSelector/disk': got number, want string",
		"podLabels: {app.kubernetes.io/name: other}": "at '/podLabels/app.kubernetes.io~1name'",
		"watchNamespace: Default":                    "at '/watchNamespace'",
		"monitoring: {clusterLabel: k8s-cluster}":    "at '/monitoring/clusterLabel'",
	} {
		t.Run(values, func(t *testing.T) {
			_, err := tryTemplate(t, program, program, values)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Got %v, want %s", err, want)
			}
		})
	}
}

// accountIn matches each reference to a service account in an object in JSON.
var accountIn = regexp.MustCompile(
	`"(?:kind":"ServiceAccount","(?:serviceAccount":\{")?name|paramRef":\{"name|serviceAccountName)":"([^"]+)"`)

func TestEmptyAndUnusualValues(t *testing.T) {
	objects := template(t, program, program, `{resources: null, securityContext: null, replicas: 0, topologySpreadConstraints: [],
		podSecurityContext: {runAsUser: null}, nodeSelector: {zone: "1", "on": "true"}, podAnnotations: {note: "a: {{ b }} # c"},
		podLabels: {number: "12"}, extraArgs: ["-vmodule=a=1,b=2", "-x={{ .Values }}"], logVerbosity: 4, omitPodUser: true, goMaxProcs: 4, watchNamespace: "123",
		serviceAccount: {name: "007", annotations: {role: "arn:aws:iam::1:role/x"}},
		networkPolicy: {ingressFrom: [{namespaceSelector: {matchLabels: {a: "1"}}}]},
		monitoring: {serviceMonitor: true, prometheusRule: true, dashboard: true, clusterLabel: k8s_cluster, runbooks: "https://wiki/run?page=books",
			tlsConfig: {insecureSkipVerify: null, serverName: metrics}}}`)
	rules, dashboard := objects["PrometheusRule sample-controller"], objects["ConfigMap sample-controller-dashboard"]
	if text := fmt.Sprint(rules, dashboard); strings.Count(text, "k8s_cluster") < 10 || !strings.Contains(text, "https://wiki/run?page=books#") {
		t.Errorf("The alerts or the dashboard lack the label of clusters, or the address of the manual: %s", text)
	}
	tls := at(objects["ServiceMonitor sample-controller"], "spec", "endpoints", "0", "tlsConfig")
	footest.ExpectEqual(t, "the tlsConfig", any(mapping{"serverName": "metrics"}), tls)
	deployment := objects["Deployment sample-controller"]
	c := at(deployment, "spec", "template", "spec", "containers", "0").(mapping)
	for _, key := range []string{"resources", "securityContext", "volumeMounts"} {
		if value, there := c[key]; there {
			t.Errorf("The container has %s: %v", key, value)
		}
	}
	args, env := c["args"].([]any), c["env"].([]any)
	footest.ExpectEqual(t, "the end of the arguments", []any{"-namespace=123", "-omit-pod-user", "-v=4", "-vmodule=a=1,b=2", "-x={{ .Values }}"}, args[len(args)-5:])
	footest.ExpectEqual(t, "the last variable", any(mapping{"name": "GOMAXPROCS", "value": "4"}), env[len(env)-1])
	for path, want := range map[string]any{
		"spec replicas": 0, "spec template spec securityContext runAsUser": nil, "spec template spec securityContext runAsNonRoot": true,
		"spec template spec nodeSelector zone": "1", "spec template spec nodeSelector on": "true", "spec template metadata annotations note": "a: {{ b }} # c",
		"spec template metadata labels number": "12", "spec template spec topologySpreadConstraints": nil,
	} {
		if got := at(deployment, strings.Fields(path)...); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	references := 0
	for id, object := range objects {
		text, err := json.Marshal(object)
		footest.Must(t, err)
		for _, found := range accountIn.FindAllStringSubmatch(string(text), -1) {
			if references++; found[1] != "007" && !strings.HasSuffix(found[1], "-scraper") {
				t.Errorf("%s refers to the account %s", id, found[1])
			}
		}
	}
	if references < 7 {
		t.Errorf("Only %d references to the account were found", references)
	}
	if got := at(objects["Role sample-controller"], "metadata", "namespace"); got != "123" {
		t.Errorf("The Role is in %v", got)
	}
	if got := at(objects["ServiceAccount 007"], "metadata", "annotations", "role"); got != "arn:aws:iam::1:role/x" {
		t.Errorf("The account's annotation is %v", got)
	}
	if got := at(objects["NetworkPolicy sample-controller"], "spec", "ingress", "0", "from"); got == nil {
		t.Error("The NetworkPolicy allows ingress from everywhere")
	}
}

// dnsLabel matches the Service names that every supported release of Kubernetes accepts.
var dnsLabel = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// TestNamesAreValidForAnyRelease also checks that the names of a release's objects contain its own, and
// those of cluster-scoped ones its namespace, so that releases share no object, except for the CRD.
func TestNamesAreValidForAnyRelease(t *testing.T) {
	long := strings.Repeat("very-", 10) + "big"
	for _, c := range []struct{ release, values, want string }{
		{"one", "", "one-sample-controller"},
		{"sample-controller", "", "sample-controller"},
		{"a.b", "", "a-b-sample-controller"},
		{"one", "nameOverride: foos", "one-foos"},
		{"one", "fullnameOverride: 'null'", "null"},
		{"one", "fullnameOverride: " + strings.Repeat("a", 63), strings.Repeat("a", 55)},
		{long, "", strings.TrimRight((long + "-" + program)[:55], "-")},
		{"1st", "fullnameOverride: first", "first"},
	} {
		t.Run(c.release+" "+c.values, func(t *testing.T) {
			objects := template(t, c.release, "team", c.values+"\n"+everything)
			if objects["Deployment "+c.want] == nil {
				t.Errorf("No Deployment %s among %v", c.want, slices.Sorted(maps.Keys(objects)))
			}
			for id, object := range objects {
				name := at(object, "metadata", "name").(string)
				isShared := at(object, "metadata", "namespace") == nil && !strings.HasSuffix(name, ".team")
				if object["kind"] != "CustomResourceDefinition" && (isShared || !strings.HasPrefix(name, c.want)) {
					t.Errorf("%s may be another release's, too: its name lacks %s, or it is cluster-scoped and not of .team", id, c.want)
				}
				if object["kind"] == "Service" && !dnsLabel.MatchString(name) {
					t.Errorf("%s is not a valid name of a Service", id)
				}
			}
		})
	}
	if _, err := tryTemplate(t, "1st", "team", ""); err == nil || !strings.Contains(err.Error(), "set fullnameOverride") {
		t.Errorf("A release that begins with a digit: %v", err)
	}
}

// TestTheOldestKubernetesIsThatOfTheManual: the chart refuses older ones.
func TestTheOldestKubernetesIsThatOfTheManual(t *testing.T) {
	manual, err := os.ReadFile(root + "/docs/operations.md")
	footest.Must(t, err)
	chart, err := os.ReadFile(folder + "/Chart.yaml")
	footest.Must(t, err)
	said := regexp.MustCompile(`needs Kubernetes (1\.\d+) or newer`).FindSubmatch(manual)
	if len(said) < 2 || !strings.Contains(string(chart), ">="+string(said[1])+".0-0") {
		t.Errorf("docs/operations.md says %q, and the chart does not need that:\n%s", said, chart)
	}
}
