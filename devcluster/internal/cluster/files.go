// SPDX-License-Identifier: Apache-2.0

// The files that the components read: the audit policy, KWOK's stages, kubeconfigs.

package cluster

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// auditPolicy logs each write once, when it is answered, with user, object and time. The
// log has the bodies of requests and responses only for the given resources, such as
// deployments.apps, and their subresources: with those of Foos, Deployments, ReplicaSets
// and Pods, it is 2.3 times as large, and the API server needs about a tenth more CPU.
func auditPolicy(bodies []string) string {
	var policy strings.Builder
	policy.WriteString("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n" +
		"- level: None\n  verbs: [get, list, watch]\n")
	for _, name := range bodies {
		resource := schema.ParseGroupResource(name)
		fmt.Fprintf(&policy, "- level: RequestResponse\n  omitManagedFields: true\n  resources:\n"+
			"  - group: %q\n    resources: [%q, %q]\n", resource.Group, resource.Resource, resource.Resource+"/*")
	}
	policy.WriteString("- level: Metadata\n")
	return policy.String()
}

// kwokStages returns KWOK's own fast stages: a node is Ready at once and renews its
// lease, a Pod is Ready as soon as it is bound, a Job's Pod then completes, and a deleted
// Pod is removed at once.
func kwokStages() string {
	return strings.Join([]string{
		nodefast.DefaultNodeInit,
		nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podfast.DefaultPodDelete,
	}, "\n---\n")
}

// prepareFiles creates the folders of the data folder and the files that the components
// read. It returns the authority that signs clients of the API.
func prepareFiles(l Layout, p Ports, auditBodies []string) (*authority, error) {
	for _, dir := range []string{l.PKI(), l.Config(), l.Logs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	ca, err := preparePKI(l)
	if err != nil {
		return nil, err
	}
	for component, user := range componentUsers() {
		config, err := kubeconfig(ca, httpsURL(p.API), user)
		if err != nil {
			return nil, err
		}
		if err := writeKubeconfig(l.ComponentKubeconfig(component), config); err != nil {
			return nil, err
		}
	}
	files := map[string]string{l.AuditPolicy(): auditPolicy(auditBodies), l.KwokStages(): kwokStages()}
	for path, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("preparing the data folder: %w", err)
		}
	}
	return ca, nil
}
