// SPDX-License-Identifier: Apache-2.0

// A migration on a real control plane, of a kind that changes in every form.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// walk is a migration of a test.
type walk struct {
	*testing.T

	root    string
	things  func(version string) dynamic.ResourceInterface
	writing func() // ends the client that writes all the time
}

// TestMigration makes a migration go wrong, walks back, and to the end. README.md, whose commands
// make docs-test runs, shows one that goes well, with a controller.
func TestMigration(t *testing.T) {
	w := newWalk(t)
	for name, how := range map[string]string{
		"client-side": "apply", "server-side": "apply --server-side --field-manager=gitops", "frozen": "create", "unclear": "create",
	} {
		w.apply("v1alpha1", name, ofOld, how)
	}
	w.patch("unclear", `{"spec":{"address":"noport"}}`)
	w.own("unclear")
	w.write("v1alpha1")
	w.kubectl("apply", "-f", "testdata/refusal.yaml") // it is in force when objects are rewritten

	w.expect("", "next  1 expand", "status")
	w.expect("", "expanded", "next")
	// Nothing has the fields of v1beta1 yet; neither a status nor a number of replicas needs them.
	w.patch("client-side", `{"status":{"phase":"old"}}`, "--subresource=status")
	w.kubectl("scale", "things.v1alpha1.example.org", "client-side", "--replicas=3")
	w.expect("", "MutatingAdmissionPolicy things.example.org-versions", "next")
	for name, writes := range histories {
		t.Run(name, func(t *testing.T) { w.play(t, writes) })
	}
	// What was stored before the policy stays writable.
	w.patch("unclear", `{"spec":{"replicas":3}}`)
	// Two managers apply one field under its two names: the second takes it without a conflict,
	// and the first takes it back.
	w.apply("v1beta1", "server-side", "{title: second}", "apply --server-side --field-manager=second")
	w.apply("v1alpha1", "server-side", ofOld, "apply --server-side --field-manager=gitops")

	w.expect("denied request: frozen", "", "next")
	w.thaw()
	w.expect("1 objects have a value that can't be converted: default/unclear", "", "next")
	w.patch("unclear", `{"spec":{"address":"h:1"}}`)
	w.expect("", "strict", "next")
	w.kubectl("delete", "mutatingadmissionpolicybinding", "things.example.org-versions")
	w.expect("", "step 2, policy", "next")
	w.expect("move all clients", "gitops (1)", "next")

	w.expect("", "original", "back", "-clients-have-moved")
	w.expect("", "next  1 expand", "status")
	// What was stored of the new fields is gone: with this, both sides would differ.
	w.patch("unclear", `{"spec":{"name":"changed"}}`)

	w.expect("move all clients", "strict", "next", "-through=clients")
	w.write("v1beta1")
	// A client-side apply through both versions leaves two entries of one manager.
	w.apply("v1beta1", "client-side", "{title: client-side, host: h, port: 80, resources: {cpu: 3}, size: 1Gi, replicas: 2}", "apply")
	w.expect("there is no such step", "", "next", "-clients-have-moved", "-through=nowhere")
	w.expect("", "step 9, managedfields", "next", "-clients-have-moved", "-through=managedfields")
	w.expect("move all clients", "strict", "back")
	w.expect("", "unserved", "next", "-clients-have-moved", "-through=managedfields")
	w.expect("", "contracted", "next", "-clients-have-moved", "-through=prune")
	w.expect("", "can't be taken back", "status")
	w.expect("can't be taken back", "", "back", "-clients-have-moved")
	w.writing()
	w.checkEnd()
}

// write lets a client write through a version all the time, instead of the one before. A
// StorageVersionMigration waits for such a write. The test fails if one of them does.
func (w *walk) write(version string) {
	w.Helper()
	w.writing()
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan error)
	go func() {
		n := 0
		ended <- wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			n++
			patch := fmt.Sprintf(`{"metadata":{"labels":{"seen":"%d"}}}`, n)
			_, err := w.things(version).Patch(ctx, "client-side", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return false, err
		})
	}()
	w.writing = func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.Errorf("a write through %s: %v", version, err)
		}
	}
}

// ofOld is a spec of the old version. A thing is named as the object.
const ofOld = "{name: NAME, address: 'h:80', cpu: 2, sizeGB: 1, replicas: 2}"

func newWalk(t *testing.T) *walk {
	t.Helper()
	w := &walk{T: t, root: t.TempDir(), writing: func() {}}
	if os.Getenv("DEVCLUSTER_BIN") == "" {
		t.Skip("DEVCLUSTER_BIN is not set; run make test-migrate")
	}
	for from, to := range map[string]string{"versions.yaml": "pkg/apis/example/versions.yaml", "things.yaml": "raw/example.org_things.yaml"} {
		text, err := os.ReadFile(filepath.Join("internal/shape/testdata", from))
		w.must(err)
		w.file(to, text)
	}
	w.must(generate(w.root, filepath.Join(w.root, "raw")))
	var original bytes.Buffer
	w.must(run(t.Context(), []string{"print", "-root=" + w.root, "original"}, &original))
	w.kubectl("apply", "-f", w.file("original.yaml", original.Bytes()))
	w.kubectl("wait", "--for=condition=Established", "crd/things.example.org")
	d, raw, err := read(w.root, "")
	w.must(err)
	m, err := connect(d, raw, options{}, &original)
	w.must(err)
	w.things = func(version string) dynamic.ResourceInterface {
		return m.dynamic.Resource(schema.GroupVersionResource{Group: d.Group(), Version: version, Resource: d.Resource()}).Namespace("default")
	}
	return w
}

// thaw deletes the policy that refuses writes, and waits until the API server knows.
func (w *walk) thaw() {
	w.Helper()
	w.kubectl("delete", "-f", "testdata/refusal.yaml")
	w.must(wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := w.things("v1alpha1").Patch(ctx, "frozen", types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil, nil
	}))
}

func (w *walk) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// file writes a file below the root of the test's project, and returns its path.
func (w *walk) file(name string, text []byte) string {
	w.Helper()
	path := filepath.Join(w.root, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, text, 0o600))
	return path
}

func (w *walk) kubectl(args ...string) {
	w.Helper()
	args = append([]string{"kubectl", "--cache-dir=" + w.TempDir()}, args...)
	if out, err := exec.CommandContext(w.Context(), os.Getenv("DEVCLUSTER_BIN"), args...).CombinedOutput(); err != nil {
		w.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// apply writes an object in the way of a client: with a command of kubectl.
func (w *walk) apply(version, name, spec, command string) {
	w.Helper()
	manifest := fmt.Sprintf("apiVersion: example.org/%s\nkind: Thing\nmetadata: {name: %s}\nspec: %s\n", version, name, strings.ReplaceAll(spec, "NAME", name))
	w.kubectl(append(strings.Fields(command), "-f", w.file("thing.yaml", []byte(manifest)))...)
}

// patch changes an object through the old version.
func (w *walk) patch(name, patch string, args ...string) {
	w.Helper()
	w.kubectl(append([]string{"patch", "things.v1alpha1.example.org", name, "--type=merge", "-p", patch}, args...)...)
}

// own makes an object that one of the kind owns, and whose reference no controller moves.
func (w *walk) own(owner string) {
	w.Helper()
	object, err := w.things("v1alpha1").Get(w.Context(), owner, metav1.GetOptions{})
	w.must(err)
	child := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: child\n  ownerReferences: [{apiVersion: example.org/v1alpha1, kind: Thing, name: %s, uid: %s}]\n", owner, object.GetUID())
	w.kubectl("apply", "-f", w.file("child.yaml", []byte(child)))
}

// expect runs the program, and compares its error and its output with parts of them.
func (w *walk) expect(failure, output string, args ...string) {
	w.Helper()
	var out bytes.Buffer
	err := run(w.Context(), append(args, "-root="+w.root, "-settle=4s"), &out)
	w.Logf("migrate %s\n%s%v", strings.Join(args, " "), &out, err)
	switch {
	case failure == "" && err != nil:
		w.Fatal(err)
	case failure != "" && (err == nil || !strings.Contains(err.Error(), failure)):
		w.Fatalf("got the error %v, want %q", err, failure)
	case !strings.Contains(out.String(), output):
		w.Fatalf("want %q in the output", output)
	}
}

// checkEnd checks that no object, field or owner of a field was lost.
func (w *walk) checkEnd() {
	w.Helper()
	for name, title := range map[string]string{"client-side": "client-side", "server-side": "server-side", "unclear": "changed"} {
		object, err := w.things("v1beta1").Get(w.Context(), name, metav1.GetOptions{})
		w.must(err)
		spec := object.Object["spec"].(map[string]any)
		if spec["title"] != title || spec["host"] != "h" || spec["size"] != "1Gi" || spec["name"] != nil {
			w.Errorf("%s: spec %v", name, spec)
		}
		if name == "client-side" && object.Object["status"].(map[string]any)["phase"] != "old" {
			w.Errorf("%s: %v", name, object.Object)
		}
		for _, entry := range object.GetManagedFields() {
			owned := entry.FieldsV1.GetRawString()
			if entry.APIVersion != "example.org/v1beta1" || strings.Contains(owned, "f:sizeGB") {
				w.Errorf("%s: managedFields %v", name, entry)
			}
			// By the first apply and by the second, which were through two versions.
			isApply := entry.Manager == "kubectl-client-side-apply" && entry.Subresource == ""
			if isApply && (!strings.Contains(owned, "f:replicas") || !strings.Contains(owned, "f:cpu")) {
				w.Errorf("%s: %s owns only %s", name, entry.Manager, owned)
			}
		}
	}
	// The garbage collector knows the owner of the child.
	w.kubectl("delete", "things", "unclear")
	w.kubectl("wait", "--for=delete", "configmap/child", "--timeout=60s")
}
