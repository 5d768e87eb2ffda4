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
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/tools/migrate/internal/shape/shapetest"
)

// walk is a migration of a test.
type walk struct {
	*testing.T

	devcluster, kubeconfig, root string
	things                       func(version string) dynamic.ResourceInterface
	writing                      func() // ends a client that writes all the time
}

// TestMigration walks from the old version to the new one, back, and to the end.
func TestMigration(t *testing.T) {
	w := newWalk(t)
	w.apply("client-side", "apply")
	w.apply("server-side", "apply", "--server-side", "--field-manager=gitops")
	w.apply("created", "create")
	w.apply("frozen", "create")
	w.apply("unclear", "create")
	w.kubectl("patch", "things", "unclear", "--type=merge", "-p", `{"spec":{"address":"noport"}}`)
	w.kubectl("apply", "-f", "testdata/refusal.yaml") // it is in force when objects are rewritten
	w.owned("created")
	w.write("v1alpha1")

	w.expect("", "next  1 expand", "status")
	w.expect("", "expanded", "next")
	// Nothing has the fields of v1beta1 yet; neither a status nor a number of replicas needs them.
	w.kubectl("patch", "things.v1alpha1.example.org", "created", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"old"}}`)
	w.kubectl("scale", "things.v1alpha1.example.org", "created", "--replicas=3")
	w.expect("", "MutatingAdmissionPolicy things.example.org-versions", "next")
	for name, writes := range shapetest.Histories {
		t.Run(name, func(t *testing.T) { w.play(t, writes) })
	}
	t.Run("random", w.playPairs)
	// Two managers apply one field under its two names: the second takes it without a conflict,
	// and the first takes it back.
	w.kubectl("apply", "--server-side", "--field-manager=second", "-f", w.file("second.yaml",
		"apiVersion: example.org/v1beta1\nkind: Thing\nmetadata: {name: server-side}\nspec: {title: second}\n"))
	w.apply("server-side", "apply", "--server-side", "--field-manager=gitops")

	w.expect("denied request: frozen", "", "next")
	w.thaw()
	w.expect("1 objects have a value that can't be converted: default/unclear", "", "next")
	w.kubectl("patch", "things.v1beta1.example.org", "unclear", "--type=merge", "-p", `{"spec":{"address":"h:1"}}`)
	w.expect("", "strict", "next")
	w.kubectl("delete", "mutatingadmissionpolicybinding", "things.example.org-versions")
	w.expect("", "step 2, policy", "next")
	w.expect("move all clients", "gitops (1)", "next")

	w.expect("", "original", "back", "-clients-have-moved")
	w.expect("", "next  1 expand", "status")
	// What was stored of the new fields is gone: with this, both sides would differ.
	w.kubectl("patch", "things", "unclear", "--type=merge", "-p", `{"spec":{"name":"changed"}}`)
	w.apply("server-side", "apply", "--server-side", "--field-manager=gitops")

	w.expect("move all clients", "strict", "next", "-through=clients")
	w.write("v1beta1")
	// A client-side apply through both versions leaves two entries of one manager.
	w.kubectl("apply", "-f", w.file("moved.yaml", "apiVersion: example.org/v1beta1\nkind: Thing\nmetadata: {name: client-side}\n"+
		"spec: {title: client-side, host: h, port: 80, resources: {cpu: 3}, size: 1Gi, replicas: 2}\n"))
	w.expect("there is no such step", "", "next", "-clients-have-moved", "-through=nowhere")
	w.expect("", "step 10, managedfields", "next", "-clients-have-moved", "-through=managedfields")
	w.expect("move all clients", "strict", "back")
	w.expect("", "unserved", "next", "-clients-have-moved", "-through=managedfields")
	w.expect("", "contracted", "next", "-clients-have-moved", "-through=prune")
	w.expect("", "can't be taken back", "status")
	w.expect("can't be taken back", "", "back", "-clients-have-moved")
	w.writing()
	w.checkEnd()
}

// write lets a client write an object through a version all the time, instead of the one that
// did so until now. The test fails if one of its writes does.
func (w *walk) write(version string) {
	if w.writing != nil {
		w.writing()
	}
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan error)
	go func() {
		for n := 0; ; n++ {
			patch := fmt.Sprintf(`{"metadata":{"labels":{"seen":"%d"}}}`, n)
			_, err := w.things(version).Patch(ctx, "client-side", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if err == nil {
				err = sleep(ctx, 200*time.Millisecond)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	w.writing = func() {
		w.Helper()
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.Errorf("a write through %s: %v", version, err)
		}
	}
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	w := &walk{T: t, devcluster: os.Getenv("DEVCLUSTER_BIN"), kubeconfig: os.Getenv(clientcmd.RecommendedConfigPathEnvVar), root: t.TempDir()}
	if w.devcluster == "" || w.kubeconfig == "" {
		t.Skip("DEVCLUSTER_BIN or KUBECONFIG is not set; run make test-migrate")
	}
	w.file("pkg/apis/example/versions.yaml", string(shapetest.Declaration(t)))
	raw, err := yaml.Marshal(shapetest.Raw(t))
	w.must(err)
	w.file("raw/example.org_things.yaml", string(raw))
	w.must(generate(w.root, filepath.Join(w.root, "raw")))
	var original bytes.Buffer
	w.must(run(t.Context(), []string{"print", "-root=" + w.root, "original"}, &original))
	w.kubectl("apply", "-f", w.file("original.yaml", original.String()))
	w.kubectl("wait", "--for=condition=Established", "crd/things.example.org")
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	w.must(err)
	config.WarningHandler, config.QPS = rest.NoWarnings{}, -1
	client, err := dynamic.NewForConfig(config)
	w.must(err)
	w.things = func(version string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: "example.org", Version: version, Resource: "things"}).Namespace("default")
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
func (w *walk) file(name, text string) string {
	w.Helper()
	path := filepath.Join(w.root, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (w *walk) kubectl(args ...string) string {
	w.Helper()
	command := exec.CommandContext(w.Context(), w.devcluster, append([]string{"kubectl", "--kubeconfig=" + w.kubeconfig, "--cache-dir=" + w.TempDir()}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		w.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// apply writes an object of the old version in the way of a client.
func (w *walk) apply(name string, args ...string) {
	w.Helper()
	manifest := fmt.Sprintf("apiVersion: example.org/v1alpha1\nkind: Thing\nmetadata: {name: %s}\nspec: {name: %[1]s, address: 'h:80', cpu: 2, sizeGB: 1, replicas: 2}\n", name)
	w.kubectl(append(args, "-f", w.file(name+".yaml", manifest))...)
}

// owned makes an object that one of the kind owns.
func (w *walk) owned(owner string) {
	w.Helper()
	object, err := w.things("v1alpha1").Get(w.Context(), owner, metav1.GetOptions{})
	w.must(err)
	w.kubectl("apply", "-f", w.file("child.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: child\n  ownerReferences: [{apiVersion: example.org/v1alpha1, kind: Thing, name: %s, uid: %s}]\n", owner, object.GetUID())))
}

// expect runs the program, and compares its error and its output with parts of them.
func (w *walk) expect(failure, output string, args ...string) {
	w.Helper()
	var out bytes.Buffer
	err := run(w.Context(), append(args, "-root="+w.root, "-kubeconfig="+w.kubeconfig, "-settle=4s"), &out)
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

// play makes the writes of a history on the API server: the results are those in process.
func (w *walk) play(t *testing.T, writes []shapetest.Write) {
	t.Helper()
	name := regexp.MustCompile(`[^a-z]+`).ReplaceAllString(strings.ToLower(filepath.Base(t.Name())), "-")
	name = strings.Trim(name[:min(len(name), 50)], "-")
	shapetest.Play(t, writes, func(version string, sent map[string]any) (map[string]any, error) {
		stored, _ := w.things(version).Get(t.Context(), name, metav1.GetOptions{})
		return w.send(version, name, sent, stored)
	})
}

// playPairs does so with random writes.
func (w *walk) playPairs(t *testing.T) {
	shapetest.PlayPairs(t, func(version string, sent, before map[string]any) (map[string]any, error) {
		if before != nil {
			return w.send(version, "pair", sent, &unstructured.Unstructured{Object: before})
		}
		if err := ignoreNotFound(w.things(version).Delete(t.Context(), "pair", metav1.DeleteOptions{})); err != nil {
			return nil, err
		}
		return w.send(version, "pair", sent, nil)
	})
}

// send creates an object, or updates a stored one.
func (w *walk) send(version, name string, sent map[string]any, stored *unstructured.Unstructured) (map[string]any, error) {
	object := &unstructured.Unstructured{Object: sent}
	object.SetAPIVersion("example.org/" + version)
	object.SetKind("Thing")
	object.SetName(name)
	write := func() (*unstructured.Unstructured, error) {
		return w.things(version).Create(w.Context(), object, metav1.CreateOptions{})
	}
	if stored != nil {
		object.SetResourceVersion(stored.GetResourceVersion())
		write = func() (*unstructured.Unstructured, error) {
			return w.things(version).Update(w.Context(), object, metav1.UpdateOptions{})
		}
	}
	got, err := write()
	if err != nil {
		return nil, err
	}
	return got.Object, nil
}

// checkEnd checks that no object, field, owner of a field or child was lost.
func (w *walk) checkEnd() {
	w.Helper()
	if object, err := w.things("v1beta1").Get(w.Context(), "unclear", metav1.GetOptions{}); err != nil || object.Object["spec"].(map[string]any)["title"] != "changed" {
		w.Errorf("unclear: %v and the error %v", object, err)
	}
	for _, name := range []string{"client-side", "server-side", "created"} {
		object, err := w.things("v1beta1").Get(w.Context(), name, metav1.GetOptions{})
		w.must(err)
		spec := object.Object["spec"].(map[string]any)
		if spec["title"] != name || spec["host"] != "h" || spec["port"] != int64(80) || spec["size"] != "1Gi" || spec["name"] != nil {
			w.Errorf("%s: spec %v", name, spec)
		}
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == "kubectl-client-side-apply" && entry.Subresource == "" {
				owned := entry.FieldsV1.GetRawString() // replicas by the first apply, cpu by the second
				if !strings.Contains(owned, "f:replicas") || !strings.Contains(owned, "f:cpu") {
					w.Errorf("%s: %s owns only %s", name, entry.Manager, owned)
				}
			}
			if entry.APIVersion != "example.org/v1beta1" || entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), "f:sizeGB") {
				w.Errorf("%s: managedFields %v", name, entry)
			}
		}
		if name == "created" && (spec["replicas"] != int64(3) || object.Object["status"].(map[string]any)["phase"] != "old") {
			w.Errorf("%s: %v", name, object.Object)
		}
	}
	// A conflict is one with the owner of the old field.
	other := w.file("other.yaml", "apiVersion: example.org/v1beta1\nkind: Thing\nmetadata: {name: server-side}\nspec: {size: 4Gi}\n")
	command := exec.CommandContext(w.Context(), w.devcluster, "kubectl", "--kubeconfig="+w.kubeconfig, "apply", "--server-side", "--field-manager=other", "-f", other)
	if out, err := command.CombinedOutput(); !errors.As(err, new(*exec.ExitError)) || !strings.Contains(string(out), `conflict with "gitops": .spec.size`) {
		w.Errorf("another manager: %v\n%s", err, out)
	}
	// The garbage collector knows the owner of the child.
	w.kubectl("delete", "things", "created")
	w.kubectl("wait", "--for=delete", "configmap/child", "--timeout=60s")
}
