// SPDX-License-Identifier: Apache-2.0

// Kinds and plurals, and which kinds own which.

package timeline

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"example.com/sample-controller/test/audit"
)

// kindOf returns the kind of a write's object: from its body, or derived from the plural
// in the URL.
func kindOf(w audit.Write) string {
	if w.Body != nil && w.Body.Kind != "" {
		return w.Body.Kind
	}
	if kind, ok := compounds()[w.Resource]; ok {
		return kind
	}
	name := singular(w.Resource)
	first, size := utf8.DecodeRuneInString(name)
	if size == 0 {
		return "object"
	}
	return string(unicode.ToUpper(first)) + name[size:]
}

func singular(plural string) string {
	switch {
	case strings.HasSuffix(plural, "ies"):
		return strings.TrimSuffix(plural, "ies") + "y"
	case strings.HasSuffix(plural, "sses"), strings.HasSuffix(plural, "xes"):
		return strings.TrimSuffix(plural, "es")
	case strings.HasSuffix(plural, "ss"):
		return plural
	}
	return strings.TrimSuffix(plural, "s")
}

// compounds returns the kinds with a capital letter within the name, and this project's
// own kind, whose plural may be irregular.
func compounds() map[string]string {
	kinds := map[string]string{"endpoints": "Endpoints", "foos": "Foo"}
	for _, kind := range []string{
		"APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle", "ConfigMap", "ControllerRevision", "CronJob",
		"CustomResourceDefinition", "DaemonSet", "DeviceClass", "EndpointSlice", "FlowSchema", "HorizontalPodAutoscaler", "IngressClass", "IPAddress", "LimitRange",
		"MutatingWebhookConfiguration", "NetworkPolicy", "PersistentVolume", "PersistentVolumeClaim",
		"PodDisruptionBudget", "PodTemplate", "PriorityClass", "PriorityLevelConfiguration", "ReplicaSet", "ReplicationController",
		"ResourceClaim", "ResourceQuota", "ResourceSlice", "RoleBinding", "RuntimeClass", "ServiceAccount", "ServiceCIDR", "StatefulSet", "StorageClass",
		"StorageVersion", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
		"VolumeAttachment",
	} {
		kinds[plural(kind)] = kind
	}
	return kinds
}

// plural returns the name of a kind's resource.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.EqualFold(kind, "Foo"):
		return "foos" // may be irregular
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	case strings.HasSuffix(name, "s"):
		return name + "es"
	}
	return name + "s"
}

// canOwn reports whether parent may own child, as far as the resources show it:
// ReplicaSets and other workloads own Pods, and a custom resource may own objects of any
// other resource.
func canOwn(parent, child key) bool {
	if makers, ok := makers()[child.resource]; ok && builtIn(child) && builtIn(parent) {
		return strings.Contains(makers, " "+parent.resource+" ")
	}
	return !builtIn(parent) && parent.resource != child.resource
}

// makers returns, for each resource, the resources whose objects own objects of it.
func makers() map[string]string {
	return map[string]string{
		"pods":                   " replicasets statefulsets daemonsets jobs replicationcontrollers ",
		"replicasets":            " deployments ",
		"jobs":                   " cronjobs ",
		"controllerrevisions":    " statefulsets daemonsets ",
		"persistentvolumeclaims": " statefulsets pods ",
		"endpoints":              " services ",
		"endpointslices":         " services endpoints ",
	}
}

// builtIn reports whether a resource belongs to Kubernetes itself.
func builtIn(k key) bool {
	switch k.group {
	case "", "apps", "batch", "autoscaling", "policy":
		return true
	}
	name, found := strings.CutSuffix(k.group, ".k8s.io")
	switch name {
	case "admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
		"coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "networking", "node",
		"rbac.authorization", "resource", "scheduling", "storage", "storagemigration":
		return found
	}
	return false
}
