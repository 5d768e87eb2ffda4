// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/kubectl-foo/internal/manifest"
	"example.com/sample-controller/tools/kubectl-foo/internal/schema"
)

// The parts of Foos: each metadata is tried with each spec and each status.
var (
	metadataParts = []string{
		`{"name":"a"}`, `{"name":"a","labels":{"a":"b"},"annotations":{"x":"y"}}`, `{}`, `{"name":""}`, `{"name":"A"}`, `{"name":"a.b"}`,
		`{"name":"a_b"}`, `{"name":7}`, `{"name":null}`, `{"generateName":"a-"}`, `{"name":"a","labels":{"a":1}}`, `{"name":"a","labels":{"-":"b"}}`,
		`{"name":"a","labels":{"a":"b c"}}`, `{"name":"a","nam":"b"}`, `{"name":"a","finalizers":["x"]}`, `{"name":"a","finalizers":["example.com/x"]}`,
		`{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}`, `{"name":"a","ownerReferences":[{"kind":"Pod"}]}`,
		`{"name":"a","annotations":{"-x":"y"}}`, `{"name":"a","creationTimestamp":"yesterday"}`, `{"name":"a","generation":3,"uid":"u"}`, `[]`, `null`,
		`{"name":"` + strings.Repeat("a", 63) + `"}`, `{"name":"` + strings.Repeat("a", 64) + `"}`, `{"name":"` + strings.Repeat("a", 254) + `"}`,
	}
	specParts = []string{
		`{"deploymentName":"web"}`, `{"deploymentName":"web","replicas":1}`, `{"deploymentName":"web","replicas":10}`, `{"deploymentName":"w.e-b","replicas":null}`,
		`{"deploymentName":"web","replicas":0}`, `{"deploymentName":"web","replicas":11}`, `{"deploymentName":"web","replicas":-1}`,
		`{"deploymentName":"web","replicas":1.0}`, `{"deploymentName":"web","replicas":1.5}`, `{"deploymentName":"web","replicas":1e1}`,
		`{"deploymentName":"web","replicas":4294967297}`, `{"deploymentName":"web","replicas":99999999999999999999}`, `{"deploymentName":"web","replicas":"2"}`,
		`{"deploymentName":"web","replicas":true}`, `{"deploymentName":"web","replicas":[2]}`, `{"deploymentName":"web","replica":2}`,
		`{"deploymentName":"web","more":{"of":["others"]}}`, `{"deploymentName":""}`, `{"deploymentName":"Web"}`, `{"deploymentName":"web\n"}`, `{"deploymentName":"-web"}`,
		`{"deploymentName":"w..b"}`, `{"deploymentName":"wéb"}`, `{"deploymentName":null}`, `{"deploymentName":1}`, `{"deploymentName":{}}`, `{}`, `null`, `[]`, `"web"`, `7`,
		`{"deploymentName":"web","deploymentName":"bew"}`, `{"replicas":2,"deploymentName":"web","replicas":3}`,
		`{"deploymentName":"` + strings.Repeat("a", 253) + `"}`, `{"deploymentName":"` + strings.Repeat("a", 254) + `"}`, `{"deploymentName":"\ud800"}`,
	}
	statusParts = []string{
		`{}`, `null`, `{"availableReplicas":-1}`, `{"availableReplicas":"2"}`, `{"observedGeneration":9223372036854775808}`, `[]`, `{"more":1}`,
		`{"conditions":[{"type":"Ready"}]}`, `{"conditions":[{"type":"Ready","status":"True","reason":"A","message":"","lastTransitionTime":"2026-11-21T12:00:00Z"}]}`,
	}
)

// candidates are the Foos on which verdicts are compared.
func candidates() []string {
	const form = `{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":%s,"spec":%s,"status":%s}`
	var all []string
	for _, metadata := range metadataParts {
		for _, spec := range specParts {
			all = append(all, fmt.Sprintf(form, metadata, spec, "{}"))
		}
	}
	for _, status := range statusParts {
		for _, spec := range specParts {
			all = append(all, fmt.Sprintf(form, metadataParts[0], spec, status))
		}
	}
	const plain = `"metadata":{"name":"a"},"spec":{"deploymentName":"web"}}`
	return append(all, "{}", "[]", "null", "7", `{"kind":"Foo",`+plain, `{"apiVersion":"samplecontroller.k8s.io/v1alpha1",`+plain,
		`{"apiVersion":"samplecontroller.k8s.io/v1","kind":"Foo",`+plain, `{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Bar",`+plain,
		`{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","more":1,`+plain, `{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","spec":{"deploymentName":"web"}}`,
		`{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":{"name":"a"}}`)
}

// verdict is the spec that is stored, or why a Foo is refused.
type verdict struct {
	spec, refusal string
	reason        metav1.StatusReason
	// unread means that the refusal is of what decodes JSON: its words may differ.
	unread bool
}

// TestTheVerdictsAreTheAPIServers compares what validate says of Foos with what the API
// server answers to kubectl, which asks for strict validation.
func TestTheVerdictsAreTheAPIServers(t *testing.T) {
	ns := newNamespace(t, "verdicts")
	v, err := schema.New()
	must(t, err)
	v.Namespace = string(ns)
	all := candidates()
	server := make([]verdict, len(all))
	each(all, func(i int, text string) { server[i] = serverCreates(t.Context(), ns, text) })
	accepted := 0
	for i, text := range all {
		ours := validatorCreates(t.Context(), v, text)
		if !sameVerdict(ours, server[i]) {
			t.Errorf("of %s\nvalidate says       %+v\nthe API server says %+v", text, ours, server[i])
		}
		if ours.refusal == "" {
			accepted++
		}
	}
	t.Logf("%d Foos, of which %d are accepted", len(all), accepted)
	if accepted == 0 || accepted == len(all) {
		t.Error("the verdicts are all the same")
	}
}

// TestTheVerdictsOnUpdatesAreTheAPIServers does the same for updates of stored Foos.
func TestTheVerdictsOnUpdatesAreTheAPIServers(t *testing.T) {
	ns := newNamespace(t, "updates")
	ns.create(t, "a", "web", 2)
	v, err := schema.New()
	must(t, err)
	v.Namespace = string(ns)
	old := &unstructured.Unstructured{}
	must(t, json.Unmarshal([]byte(raw(t, ns, http.MethodGet, "/a", "")), old))
	var texts []string
	for _, text := range candidates() {
		if strings.Contains(text, `"metadata":{"name":"a"`) {
			texts = append(texts, text)
		}
	}
	for _, text := range texts {
		ours, theirs := validatorUpdates(t.Context(), v, text, old), serverUpdates(t.Context(), ns, text, old.GetResourceVersion())
		if !sameVerdict(ours, theirs) {
			t.Errorf("of an update to %s\nvalidate says       %+v\nthe API server says %+v", text, ours, theirs)
		}
	}
}

// each calls do with each text, several at a time.
func each(texts []string, do func(int, string)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, text := range texts {
		slots <- struct{}{}
		group.Go(func() {
			do(i, text)
			<-slots
		})
	}
	group.Wait()
}

func sameVerdict(ours, theirs verdict) bool {
	if ours.refusal == "" || theirs.refusal == "" {
		return ours.spec == theirs.spec && ours.refusal == theirs.refusal
	}
	if ours.reason == metav1.StatusReasonConflict { // the API server's words name its storage
		return ours.reason == theirs.reason
	}
	return ours.unread || strings.HasSuffix(generated.ReplaceAllString(theirs.refusal, ""), generated.ReplaceAllString(ours.refusal, ""))
}

// generated matches the end of a generated name, which is random.
var generated = regexp.MustCompile(`"a-[a-z0-9]{5}"`)

func request(ns namespace, method, path, body string) func(ctx context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		client := env.foo.SamplecontrollerV1alpha1().RESTClient()
		result := client.Verb(method).AbsPath("/apis/samplecontroller.k8s.io/v1alpha1/namespaces/"+string(ns)+"/foos"+path).
			Param("dryRun", "All").Param("fieldValidation", "Strict").SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx)
		if err := result.Error(); err != nil { // which has the API server's words, unlike that of Raw
			return nil, err
		}
		return result.Raw()
	}
}

func raw(t *testing.T, ns namespace, method, path, body string) string {
	t.Helper()
	data, err := request(ns, method, path, body)(t.Context())
	must(t, err)
	return string(data)
}

func serverCreates(ctx context.Context, ns namespace, text string) verdict {
	data, err := request(ns, http.MethodPost, "", text)(ctx)
	return verdictOf(data, err)
}

func serverUpdates(ctx context.Context, ns namespace, text, version string) verdict {
	data, err := request(ns, http.MethodPut, "/a", strings.Replace(text, `"name":"a"`, `"name":"a","resourceVersion":"`+version+`"`, 1))(ctx)
	return verdictOf(data, err)
}

func verdictOf(data []byte, err error) verdict {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return verdict{refusal: status.Status().Message, reason: status.Status().Reason}
	}
	if err != nil {
		return verdict{refusal: err.Error()}
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, object); err != nil {
		return verdict{refusal: err.Error()}
	}
	return verdict{spec: fmt.Sprint(object.Object["spec"])}
}

func validatorCreates(ctx context.Context, v *schema.Validator, text string) verdict {
	return judged(text, func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return v.Create(ctx, object)
	})
}

func validatorUpdates(ctx context.Context, v *schema.Validator, text string, old *unstructured.Unstructured) verdict {
	return judged(text, func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return v.Update(ctx, object, old)
	})
}

func judged(text string, judge func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) verdict {
	read, err := manifest.Read([]string{"-"}, strings.NewReader(text))
	if err != nil {
		return verdict{refusal: err.Error(), unread: true}
	}
	object := read[0].Unstructured
	stored, err := judge(object)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return verdict{refusal: status.Status().Message, reason: status.Status().Reason}
	}
	if err != nil {
		return verdict{refusal: err.Error(), unread: !errors.As(err, new(*schema.UnknownFieldsError))}
	}
	return verdict{spec: fmt.Sprint(stored.Object["spec"])}
}

// TestAThousandFilesAreJudgedInTwoSeconds goes by CPU time, since machines may be busy.
func TestAThousandFilesAreJudgedInTwoSeconds(t *testing.T) {
	folder, args := t.TempDir(), []string{"validate"}
	for i := range 1000 {
		path := filepath.Join(folder, fmt.Sprintf("foo-%d.yaml", i))
		text := fmt.Sprintf("apiVersion: %s\nkind: Foo\nmetadata: {name: foo-%d}\nspec: {deploymentName: web-%d, replicas: 2}\n", samplev1alpha1.SchemeGroupVersion, i, i)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		args = append(args, "-f="+path)
	}
	got := run(t, args...)
	t.Logf("1,000 files: %v of CPU", got.cpu)
	if got.code != 0 || got.out != "Valid: 1000 Foos.\n" {
		t.Errorf("exit code %d:\n%s%s", got.code, got.out, got.errOut)
	}
	if got.cpu > 2*time.Second {
		t.Errorf("it took %v of CPU", got.cpu)
	}
}
