// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// TestFoosAdoptAfterARestore restores a namespace as Velero does, with and without the resource
// modifier in docs/operations.md. Then all Foos are ready with the restored Pods.
func TestFoosAdoptAfterARestore(t *testing.T) {
	startController(t)
	manual, err := os.ReadFile(tree + "/docs/operations.md")
	if footest.Must(t, err); !strings.Contains(string(manual), modified+"\n  patches:\n  - operation: copy\n    from: "+nameOfFoo+"\n    path: "+annotation+"\n") {
		t.Error("the manual has another resource modifier")
	}
	consents := "{.items[*].metadata.annotations." + strings.ReplaceAll(samplev1alpha1.AnnotationAdoptBy, ".", `\.`) + "}"
	for name, isModified := range map[string]bool{"restored": false, "restored-modified": true} {
		t.Run(name, func(t *testing.T) {
			ns := newNamespace(t, name)
			ns.kubectl("create", "deployment", "byhand", "--image=other")
			ns.kubectl("annotate", "deployment", "byhand", samplev1alpha1.AnnotationAdoptBy+"=c")
			for foo, deployment := range map[string]string{"a": "web", "b": "api", "c": "byhand"} {
				ns.kubectl("create", "-f", ns.file(manifestOf(foo, deployment)))
			}
			ns.kubectl("wait", "--for=condition=Ready", "foo/a", "foo/b", "foo/c", "--timeout="+limit.String())
			ns.kubectl("rollout", "status", "deployment", "byhand", "--timeout="+limit.String())
			ns.restore(isModified)
			ns.kubectl("create", "deployment", "theirs", "--image=other")
			ns.kubectl("create", "deployment", "unwanted", "--image=other")
			ns.kubectl("create", "-f", ns.file(manifestOf("d", "theirs")))
			ns.kubectl("wait", "--for=jsonpath={.status.conditions[0].reason}=DeploymentConflict", "foo/d", "--timeout="+limit.String())
			pods := []string{"get", "pods", "-l", "controller in (a, b, c)", "-o", "jsonpath={.items[*].metadata.uid}"}
			before := ns.kubectl(pods...)

			if !isModified {
				adopts := []string{"Foo restored/a > may adopt Deployment web", "Foo restored/b > may adopt Deployment api"}
				footest.Must(t, ns.foo("adopt", "a", "b", "--dry-run").check(1, adopts...))
				footest.Must(t, ns.foo("adopt", "a", "b").check(0, adopts...))
			}
			ns.kubectl("wait", "--for=condition=Ready", "foo/a", "foo/b", "--timeout="+limit.String())
			footest.Must(t, ns.foo("adopt").check(1, "c > may adopt Deployment byhand", `d ! Deployment "theirs" exists and has no controller: `))
			ns.kubectl("wait", "--for=condition=Ready", "foo/c", "--timeout="+limit.String())
			footest.ExpectEqual(t, "the consents left", "", ns.kubectl("get", "deployments", "-o", "jsonpath="+consents))
			footest.ExpectEqual(t, "the restored Pods", before, ns.kubectl(pods...))
		})
	}
}

// That a sync ends each pause, the controller's own tests show.
func TestSync(t *testing.T) {
	startController(t)
	ns := newNamespace(t, "sync")
	ns.kubectl("create", "-f", ns.file(manifestOf("a", "web")))
	ns.kubectl("wait", "--for=condition=Ready", "foo/a", "--timeout="+limit.String())
	ns.kubectl("create", "quota", "none", "--hard=count/deployments.apps=1")
	ns.kubectl("patch", "foo", "a", "--type=merge", "-p", `{"spec":{"deploymentName":"api"}}`)
	ns.kubectl("wait", "--for=jsonpath={.status.conditions[0].reason}=DeploymentFailed", "foo/a", "--timeout="+limit.String())
	footest.Must(t, ns.foo("sync", "a").check(0, `Foo sync/a was synced: Ready is False, DeploymentFailed: The API server refused: `))
	ns.kubectl("delete", "quota", "none")
	footest.Must(t, ns.foo("sync", "a").check(0, "Foo sync/a was synced: Ready is "))
	ns.kubectl("wait", "--for=condition=Ready", "foo/a", "--timeout="+limit.String())
	footest.Must(t, ns.foo("sync", "b").check(2, `there is no Foo "b"`))
}

// The resource modifier in docs/operations.md.
const (
	modified   = "matches: [{path: /spec/template/metadata/labels/app, value: nginx}]"
	nameOfFoo  = "/spec/template/metadata/labels/controller"
	annotation = "/metadata/annotations/samplecontroller.k8s.io~1adopt-by"
)

// restore deletes the namespace, and creates it and what was in it like Velero's pkg/restore: in
// this order, without what resetMetadata removes and without status, perhaps modified, then the
// managers of fields.
func (ns namespace) restore(isModified bool) {
	ns.Helper()
	var saved []*unstructured.Unstructured
	for _, resource := range []string{"pods", "replicasets", "deployments", "foos"} {
		list := &unstructured.UnstructuredList{}
		footest.Must(ns.T, list.UnmarshalJSON([]byte(ns.kubectl("get", resource, "-o", "json", "--show-managed-fields"))))
		for i := range list.Items {
			saved = append(saved, &list.Items[i])
		}
	}
	ns.kubectl("delete", "namespace", ns.name, "--timeout="+limit.String())
	ns.kubectl("create", "namespace", ns.name)
	for _, object := range saved {
		for _, field := range []string{"generateName", "uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(object.Object, "status")
		text, err := json.Marshal(object)
		footest.Must(ns.T, err)
		file := ns.file(string(text))
		app, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "labels", "app")
		if isModified && object.GetKind() == "Deployment" && app == "nginx" {
			patch := fmt.Sprintf(`[{"op": "copy", "from": %q, "path": %q}]`, nameOfFoo, annotation)
			footest.Must(ns.T, os.WriteFile(file, []byte(ns.kubectl("patch", "--local", "-f", file, "--type=json", "-p", patch, "-o", "json")), 0o600))
		}
		ns.kubectl("create", "-f", file)
		managers, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": object.GetManagedFields()}})
		footest.Must(ns.T, err)
		ns.kubectl("patch", object.GetKind(), object.GetName(), "--type=merge", "-p", string(managers))
	}
}
