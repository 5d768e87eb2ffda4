// SPDX-License-Identifier: Apache-2.0

// The values of the chart.

package main

// value is one of the chart's values, and how it changes the manifests.
type value struct {
	// name is the path of the value: image.tag is the key tag below image.
	name string
	// schema is the value's JSON Schema without the description.
	schema string
	// about is the description.
	about string
	// kind and path are the value's place in the manifests: a kind, or one object of it
	// (kind/name), and a path as in tree.go. "|" separates several places.
	kind, path string
	// edit turns the place into a template of the value. It is nil if other code does
	// that.
	edit *edit
	// initial is the default of a value for which the manifests have none.
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
	{"nameOverride", dnsLabel, "replaces the chart's name in the names of objects", "", "", nil, ""},
	{"fullnameOverride", dnsLabel, "replaces the release's and the chart's name in the names of objects", "", "", nil, ""},
	{"image.repository", `"type": "string", "minLength": 1`, "image of the controller, without tag", "Deployment", container + "image", imageEdit, nil},
	{"image.tag", text, "tag of the image; if empty, the chart's appVersion", "", "", nil, ""},
	{"image.digest", `"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"`, "digest of the image, which takes precedence over the tag: `sha256:...`", "", "", nil, ""},
	{"image.pullPolicy", `"enum": ["Always", "IfNotPresent", "Never"]`, "pull policy of the image", "Deployment", container + "imagePullPolicy", scalarEdit, nil},
	{"imagePullSecrets", `"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false}`,
		"Secrets to pull the image with: `[{name: ...}]`", "Deployment", pod + "imagePullSecrets", optionalEdit, list{}},
	{"nginxImage", `"type": "string", "minLength": 1`, "image of the Foos' Pods, for example from a mirror; the admission policy allows only this one",
		"Deployment|ServiceAccount/" + program, "spec template metadata annotations " + imageKey + "|metadata annotations " + imageKey, scalarEdit, nil},
	{"watchNamespace", dnsLabel, "namespace whose Foos are reconciled, with permissions only there; if empty, all namespaces", "Deployment", container + "args", argument("-namespace=%s", "quote"), ""},
	{"replicas", number, "replicas of the controller, of which one works; with less than 2, the alert for a missing standby fires", "Deployment", "spec replicas", numberEdit, nil},
	{"workers", number, "number of Foos that are synced concurrently; 0 means the program's default", "Deployment", container + "args", argument("-workers=%d", "int"), 0},
	{"goMaxProcs", `"type": ["string", "integer"], "pattern": "^[1-9][0-9]*$", "minimum": 1`, "cores that the program uses; one is enough for about 16 workers", "Deployment", container + "env 2 value", scalarEdit, nil},
	{"logVerbosity", number, "log verbosity: 0 for start and stop, 2 to add each write, 4 to add details", "Deployment", container + "args", argument("-v=%d", "int"), 0},
	{"extraArgs", texts, "further flags of the program", "Deployment", container + "args", argumentsEdit, list{}},
	{"resources", anObject, "requests and limits of the container", "Deployment", container + "resources", blockEdit, nil},
	{"nodeSelector", byKey, "labels of the nodes to run on", "Deployment", pod + "nodeSelector", optionalEdit, mapping{}},
	{"tolerations", objects, "taints to tolerate", "Deployment", pod + "tolerations", optionalEdit, list{}},
	{"affinity", anObject, "affinity of the Pods", "Deployment", pod + "affinity", optionalEdit, mapping{}},
	{"topologySpreadConstraints", objects, "topology spread constraints of the Pods", "Deployment", pod + "topologySpreadConstraints", blockEdit, nil},
	{"priorityClassName", text, "priority class of the Pods", "Deployment", pod + "priorityClassName", optionalEdit, ""},
	{"podAnnotations", byKey, "further annotations of the Pods", "Deployment", "spec template metadata annotations", entriesEdit, mapping{}},
	{"podLabels", ourLabels, "further labels of the Pods", "Deployment", "spec template metadata labels", entriesEdit, mapping{}},
	{"podSecurityContext", anObject, "security context of the Pods; if you set the user to null, the cluster chooses one", "Deployment", pod + "securityContext", blockEdit, nil},
	{"securityContext", anObject, "security context of the container", "Deployment", container + "securityContext", blockEdit, nil},
	{"extraVolumes", objects, "further volumes, for example with a certificate for the metrics", "Deployment", pod + "volumes", optionalEdit, list{}},
	{"extraVolumeMounts", objects, "mounts of the further volumes", "Deployment", container + "volumeMounts", optionalEdit, list{}},
	{"serviceAccount.create", onOff, "create the service account; if not, it must exist, with the annotation " + imageKey + " if `nginxImage` is set", "ServiceAccount/" + program, "", whenEdit, true},
	{"serviceAccount.name", `"type": "string", "pattern": "^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$"`, "name of the service account, also in permissions and admission policy; if empty, the release's", "", "", nil, ""},
	{"serviceAccount.annotations", byKey, "annotations of the service account", "ServiceAccount/" + program, "metadata annotations", entriesEdit, mapping{}},
	{"crds.install", onOff, "install and upgrade the CustomResourceDefinition; an uninstall keeps it, and with it all Foos", "CustomResourceDefinition", "", whenEdit, true},
	{"admissionPolicy.enabled", onOff, "restrict the service account to the writes that the controller makes", "ValidatingAdmissionPolicy(Binding)?", "", whenEdit, true},
	{"userRoles.enabled", onOff, "give users with the ClusterRoles view, edit or admin access to Foos", "ClusterRole/" + program + "-foo-.*", "", whenEdit, true},
	{"podDisruptionBudget.enabled", onOff, "keep one replica running while nodes are drained", "PodDisruptionBudget", "", whenEdit, true},
	{"networkPolicy.enabled", onOff, "allow only ingress to the metrics port, and egress to the API server's ports", "NetworkPolicy", "", whenEdit, true},
	{"networkPolicy.ingressFrom", objects, "who may connect to the metrics port, as NetworkPolicyPeers; if empty, everybody", "NetworkPolicy", "spec ingress 0 from", optionalEdit, list{}},
	{"networkPolicy.egress", `"type": "array", "minItems": 1, "items": {"type": "object"}`, "egress rules: the API server's ports", "NetworkPolicy", "spec egress", blockEdit, nil},
	{"monitoring.serviceMonitor", onOff, "make the Prometheus Operator scrape the metrics, with a service account for that", "ServiceMonitor|(ServiceAccount|Secret|ClusterRoleBinding)/.*-scraper", "", whenEdit, false},
	{"monitoring.prometheusRule", onOff, "alerts for the Prometheus Operator; enable them in one release of a cluster", "PrometheusRule", "", whenEdit, false},
	{"monitoring.dashboard", onOff, "dashboard for Grafana's sidecar", "ConfigMap", "", whenEdit, false},
	{"monitoring.labels", ourLabels, "further labels of ServiceMonitor and PrometheusRule, by which a Prometheus selects them", "ServiceMonitor|PrometheusRule", "metadata labels", entriesEdit, mapping{}},
	{"monitoring.tlsConfig", anObject, "how Prometheus verifies the certificate of the metrics; with a `ca`, set `insecureSkipVerify` to null", "ServiceMonitor", "spec endpoints * tlsConfig", blockEdit, nil},
	{"monitoring.runbooks", `"type": "string", "pattern": "^https?://[^\\s#]+$"`, "address of your copy of docs/operations.md, to which the alerts link", "PrometheusRule", "spec groups * rules * annotations runbook_url", runbooksEdit, nil},
	{"monitoring.clusterLabel", `"type": "string", "pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"`, "label by which a central Prometheus distinguishes clusters, in alerts and dashboard",
		"PrometheusRule|ConfigMap", "spec groups * rules * expr|spec groups * rules * annotations summary|data " + program + ".json", clusterEdit, "cluster"},
}
