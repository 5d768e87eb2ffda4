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

// value is one of the chart's values, and what it does to the manifests.
type value struct {
	// name has dots: image.tag is the key tag below image.
	name string
	// schema is what JSON Schema says of it, besides the description.
	schema string
	// about is the description.
	about string
	// kind and path are the place of it: a kind, or one of its objects (kind/name), and the path of tree.go. Alternatives
	// have a "|" between.
	kind, path string
	// edit makes the place the value's; nil, where that is done in another way.
	edit *edit
	// initial is the default where no manifest has one.
	initial any
}

const (
	text      = `"type": "string"`
	dnsLabel  = `"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", "maxLength": 63`
	number    = `"type": "integer", "minimum": 0`
	onOff     = `"type": "boolean"`
	anObject  = `"type": ["object", "null"]`
	byKey     = `"type": "object", "additionalProperties": {"type": "string"}`
	ourLabels = byKey + `, "properties": {"app.kubernetes.io/name": false, "app.kubernetes.io/instance": false}`
	objects   = `"type": ["array", "null"], "items": {"type": "object"}`
	texts     = `"type": "array", "items": {"type": "string"}`
	pod       = "spec template spec "
	container = pod + "containers 0 "
	imageKey  = "samplecontroller.k8s.io/image"
)

// values are in the order of values.yaml and of the table in README.md.
var values = []value{
	{"nameOverride", dnsLabel, "takes the chart's name's place in the names of objects", "", "", nil, ""},
	{"fullnameOverride", dnsLabel, "takes the place of release and chart's name in the names of objects", "", "", nil, ""},
	{"image.repository", `"type": "string", "minLength": 1`, "image of the controller, without tag", "Deployment", container + "image", imageEdit, nil},
	{"image.tag", text, "its tag; empty, the chart's appVersion", "", "", nil, ""},
	{"image.digest", `"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"`, "its digest, which decides where it is given: `sha256:...`", "", "", nil, ""},
	{"image.pullPolicy", `"enum": ["Always", "IfNotPresent", "Never"]`, "when the image is pulled", "Deployment", container + "imagePullPolicy", scalarEdit, nil},
	{"imagePullSecrets", `"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false}`,
		"Secrets to pull the image with: `[{name: ...}]`", "Deployment", pod + "imagePullSecrets", optionalEdit, list{}},
	{"nginxImage", `"type": "string", "minLength": 1`, "image of the Foos' Pods, for a mirror: the one image that the admission policy takes",
		"Deployment|ServiceAccount/" + program, "spec template metadata annotations " + imageKey + "|metadata annotations " + imageKey, scalarEdit, nil},
	{"watchNamespace", dnsLabel, "namespace whose Foos to look after, with rights there alone; empty, all", "Deployment", container + "args", argument("-namespace=%s", "quote"), ""},
	{"replicas", number, "Pods of the controller, of which one works; with less than 2 the alert for a missing standby fires", "Deployment", "spec replicas", numberEdit, nil},
	{"workers", number, "Foos that are synced at the same time; 0 leaves it to the program", "Deployment", container + "args", argument("-workers=%d", "int"), 0},
	{"goMaxProcs", `"type": ["string", "integer"], "pattern": "^[1-9][0-9]*$", "minimum": 1`, "cores that the program uses; one serves up to about 16 workers", "Deployment", container + "env 2 value", scalarEdit, nil},
	{"logVerbosity", number, "0 start and stop, 2 what is written, 4 how", "Deployment", container + "args", argument("-v=%d", "int"), 0},
	{"extraArgs", texts, "more flags of the program", "Deployment", container + "args", argumentsEdit, list{}},
	{"resources", anObject, "requests and limits of the container", "Deployment", container + "resources", blockEdit, nil},
	{"nodeSelector", byKey, "labels of the nodes to run on", "Deployment", pod + "nodeSelector", optionalEdit, mapping{}},
	{"tolerations", objects, "taints to tolerate", "Deployment", pod + "tolerations", optionalEdit, list{}},
	{"affinity", anObject, "affinity of the Pods", "Deployment", pod + "affinity", optionalEdit, mapping{}},
	{"topologySpreadConstraints", objects, "how the Pods are spread", "Deployment", pod + "topologySpreadConstraints", blockEdit, nil},
	{"priorityClassName", text, "priority of the Pods", "Deployment", pod + "priorityClassName", optionalEdit, ""},
	{"podAnnotations", byKey, "more annotations of the Pods", "Deployment", "spec template metadata annotations", entriesEdit, mapping{}},
	{"podLabels", ourLabels, "more labels of the Pods", "Deployment", "spec template metadata labels", entriesEdit, mapping{}},
	{"podSecurityContext", anObject, "security context of the Pods; a user who is left out (null) is chosen by the cluster", "Deployment", pod + "securityContext", blockEdit, nil},
	{"securityContext", anObject, "security context of the container", "Deployment", container + "securityContext", blockEdit, nil},
	{"extraVolumes", objects, "volumes, for a certificate of the metrics", "Deployment", pod + "volumes", optionalEdit, list{}},
	{"extraVolumeMounts", objects, "where they are mounted", "Deployment", container + "volumeMounts", optionalEdit, list{}},
	{"serviceAccount.create", onOff, "make the account; if not, it has to be there, with the annotation " + imageKey + " if `nginxImage` is set", "ServiceAccount/" + program, "", whenEdit, true},
	{"serviceAccount.name", `"type": "string", "pattern": "^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$"`, "name of the account, for rights and admission policy too; empty, the release's", "", "", nil, ""},
	{"serviceAccount.annotations", byKey, "annotations of the account", "ServiceAccount/" + program, "metadata annotations", entriesEdit, mapping{}},
	{"crds.install", onOff, "install and upgrade the CustomResourceDefinition; an uninstall leaves it, and with it all Foos", "CustomResourceDefinition", "", whenEdit, true},
	{"admissionPolicy.enabled", onOff, "hold the account to what the controller writes", "ValidatingAdmissionPolicy(Binding)?", "", whenEdit, true},
	{"userRoles.enabled", onOff, "Foos for those who have the ClusterRoles view, edit or admin", "ClusterRole/" + program + "-foo-.*", "", whenEdit, true},
	{"podDisruptionBudget.enabled", onOff, "keep a replica while nodes are drained", "PodDisruptionBudget", "", whenEdit, true},
	{"networkPolicy.enabled", onOff, "let in only what is for the port of the metrics, and out only what is for the API server's ports", "NetworkPolicy", "", whenEdit, true},
	{"networkPolicy.ingressFrom", objects, "who may ask for metrics, as NetworkPolicyPeers; empty, everybody", "NetworkPolicy", "spec ingress 0 from", optionalEdit, list{}},
	{"networkPolicy.egress", `"type": "array", "minItems": 1, "items": {"type": "object"}`, "rules for what goes out: the API server's ports", "NetworkPolicy", "spec egress", blockEdit, nil},
	{"monitoring.serviceMonitor", onOff, "have the Prometheus Operator scrape the metrics, with an account for that", "ServiceMonitor|(ServiceAccount|Secret|ClusterRoleBinding)/.*-scraper", "", whenEdit, false},
	{"monitoring.prometheusRule", onOff, "alerts, for the Prometheus Operator; in one release of a cluster", "PrometheusRule", "", whenEdit, false},
	{"monitoring.dashboard", onOff, "a dashboard, for Grafana's sidecar", "ConfigMap", "", whenEdit, false},
	{"monitoring.labels", ourLabels, "more labels of ServiceMonitor and PrometheusRule, by which a Prometheus selects them", "ServiceMonitor|PrometheusRule", "metadata labels", entriesEdit, mapping{}},
}
