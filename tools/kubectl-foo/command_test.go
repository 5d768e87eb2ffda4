// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/sample-controller/tools/internal/printable"
)

// result is how a run of the command ended.
type result struct {
	out, errOut string
	err         error
}

// runWith runs the command with standard input in a folder with files.
func runWith(t *testing.T, in string, files map[string]string, args ...string) result {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errOut bytes.Buffer
	command := newCommand(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &errOut})
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return result{out.String(), errOut.String(), err}
}

const web = `apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata:
  name: a
spec:
  deploymentName: web
  replicas: 2
`

func TestValidate(t *testing.T) {
	changed := strings.NewReplacer("replicas: 2", "replicas: 99", "name: a\n", "name: a\n  labels: {x: z}\n").Replace(web)
	for name, test := range map[string]struct {
		files map[string]string
		args  []string
		want  []string // parts of what is said
		valid bool
	}{
		"valid":                  {map[string]string{"a.yaml": web}, []string{"-f=a.yaml"}, []string{"Valid: 1 Foo."}, true},
		"two documents":          {map[string]string{"a.yaml": web + "---\n" + strings.Replace(web, "name: a", "name: b", 1)}, []string{"-f=a.yaml"}, []string{"Valid: 2 Foos."}, true},
		"a bound":                {map[string]string{"a.yaml": changed}, []string{"-f=a.yaml"}, []string{"a.yaml:8: spec.replicas: Invalid value: 99"}, false},
		"a rule":                 {map[string]string{"a.yaml": strings.Replace(web, "web", "Web!", 1)}, []string{"-f=a.yaml"}, []string{"a.yaml:6: spec.deploymentName: Invalid value: \"Web!\": must be a DNS-1123 subdomain"}, false},
		"a missing field":        {map[string]string{"a.yaml": strings.Replace(web, "  deploymentName: web\n", "", 1)}, []string{"-f=a.yaml"}, []string{"a.yaml:5: spec.deploymentName: Required value"}, false},
		"a wrong type":           {map[string]string{"a.yaml": strings.Replace(web, "replicas: 2", "replicas: two", 1)}, []string{"-f=a.yaml"}, []string{"a.yaml:7: spec.replicas: Invalid value: \"string\""}, false},
		"an unknown field":       {map[string]string{"a.yaml": strings.Replace(web, "replicas: 2", "replica: 2", 1)}, []string{"-f=a.yaml"}, []string{`a.yaml:7: unknown field "spec.replica"`}, false},
		"of metadata":            {map[string]string{"a.yaml": strings.Replace(web, "name: a", "name: a\n  nam: b", 1)}, []string{"-f=a.yaml"}, []string{`a.yaml:5: unknown field "metadata.nam"`}, false},
		"a duplicate field":      {map[string]string{"a.yaml": web + "  replicas: 3\n"}, []string{"-f=a.yaml"}, []string{"a.yaml:1: ", "line 8: key \"replicas\" already set"}, false},
		"in a second document":   {map[string]string{"a.yaml": "# none\n---\n" + web + "---\n" + changed}, []string{"-f=a.yaml"}, []string{"a.yaml:18: spec.replicas"}, false},
		"no YAML":                {map[string]string{"a.yaml": "spec: ["}, []string{"-f=a.yaml"}, []string{"a.yaml:1: yaml:"}, false},
		"another kind":           {map[string]string{"a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"}, []string{"-f=a.yaml"}, []string{`a.yaml:1: this is a Pod of "v1", not a Foo`}, false},
		"an empty file":          {map[string]string{"a.yaml": "# nothing\n"}, []string{"-f=a.yaml"}, []string{"a.yaml: there is nothing in it"}, false},
		"no such file":           {nil, []string{"-f=a.yaml"}, []string{"a.yaml: no such file"}, false},
		"no file":                {nil, nil, []string{"say which file"}, false},
		"a list":                 {map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(changed), "\n", "\n  ")}, []string{"-f=a.yaml"}, []string{"a.yaml:11: spec.replicas"}, false},
		"an update":              {map[string]string{"a.yaml": web, "old.yaml": strings.Replace(web, "web", "old", 1)}, []string{"-f=a.yaml", "--old=old.yaml"}, []string{"Valid: 1 Foo."}, true},
		"an update to a bad one": {map[string]string{"a.yaml": changed, "old.yaml": web}, []string{"-f=a.yaml", "--old=old.yaml"}, []string{"a.yaml:8: spec.replicas"}, false},
		// The API server judges only what an update changes.
		"an update of another field of a bad one": {map[string]string{"a.yaml": changed, "old.yaml": strings.Replace(web, "replicas: 2", "replicas: 99", 1)}, []string{"-f=a.yaml", "--old=old.yaml"}, []string{"Valid: 1 Foo."}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := runWith(t, "", test.files, append([]string{"validate"}, test.args...)...)
			said := got.out + got.errOut
			if got.err != nil {
				said += got.err.Error()
			}
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("it says\n%s\nwithout %q", said, want)
				}
			}
			if (got.err == nil) != test.valid {
				t.Errorf("the error is %v", got.err)
			}
		})
	}
}

// TestRender checks the children, and that what is there counts.
func TestRender(t *testing.T) {
	got := runWith(t, web, nil, "render", "-f", "-")
	for _, want := range []string{"kind: Deployment", "name: web", "replicas: 2", "kind: Foo", "reason: Progressing"} {
		if got.err != nil || !strings.Contains(got.out, want) {
			t.Errorf("%v\n%s\nlacks %q", got.err, got.out, want)
		}
	}
	taken := "apiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: web, namespace: default}\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: other}\n"
	got = runWith(t, web, map[string]string{"observed/all.yaml": taken}, "render", "-f", "-", "--observed", "observed")
	if got.err != nil || strings.Contains(got.out, "kind: Deployment") || !strings.Contains(got.out, "reason: DeploymentConflict") {
		t.Errorf("beside a Deployment of somebody else: %v\n%s", got.err, got.out)
	}
	for want, args := range map[string][]string{
		"say which file":                   {"render"},
		"there are no .yaml":               {"render", "-f", "-", "--observed", "."},
		"unknown command \"x\"":            {"render", "x"},
		"--output=\"xml\": must be one of": {"plan", "-o", "xml"},
		"give names, or -f, or -A":         {"plan", "a", "-A"},
		"unknown command \"foo\" for":      {"foo"},
		"-:1: this is a Deployment of":     {"render", "-f", "-"},
	} {
		in := web
		if strings.HasPrefix(want, "-:1") {
			in = "apiVersion: apps/v1\nkind: Deployment\n"
		}
		if got := runWith(t, in, nil, args...); got.err == nil || errors.Is(got.err, errChanges) || !strings.Contains(got.err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, got.err, want)
		}
	}
}

// hostile controls a terminal, and passes for our advice.
const hostile = "\x1b]52;c;AAAA\a\r\n    -> to repair: run this\u009b2J\x7f\u202e"

// hostileAnswers are those of an API server to GET. HOSTILE stands for the text.
var hostileAnswers = map[string]string{
	"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos":   `{"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "FooList", "items": [` + hostileFoo + `]}`,
	"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos/a": hostileFoo,
	"/apis/apps/v1/namespaces/default/deployments": `{"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{"metadata": {"name": "web", "namespace": "default",
		"ownerReferences": [{"apiVersion": "v1", "kind": HOSTILE, "name": HOSTILE, "uid": "2", "controller": true}]}}]}`,
	"/apis/apps/v1/namespaces/default/replicasets": `{"apiVersion": "apps/v1", "kind": "ReplicaSetList"}`,
	"/api/v1/namespaces/default/pods":              `{"apiVersion": "v1", "kind": "PodList"}`,
	"/api/v1/namespaces/default/events":            `{"apiVersion": "v1", "kind": "EventList", "items": [{"involvedObject": {"uid": "1", "kind": "Foo", "name": "a"}, "reason": HOSTILE, "message": HOSTILE}]}`,
}

const hostileFoo = `{"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "1"},
	"spec": {"deploymentName": "web", "replicas": 1}, "status": {"conditions": [{"type": "Ready", "status": "False", "reason": HOSTILE, "message": HOSTILE}]}}`

func TestNoCommandLetsOthersControlTheTerminal(t *testing.T) {
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := hostileAnswers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet || answer == "" {
			w.WriteHeader(http.StatusInternalServerError)
			answer = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "InternalError", "code": 500, "message": HOSTILE}`
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(answer, "HOSTILE", string(text))))
	}))
	defer server.Close()
	t.Setenv("KUBECONFIG", os.DevNull)
	file := strings.Replace(web, "name: a", "name: "+string(printable.EscapeJSON(text)), 1)
	for _, args := range []string{
		"why a", "why a -o json", "why a -o yaml", "why b", "plan", "plan -o diff", "plan -o json", "plan -o yaml", "plan --server-dry-run",
		"validate -f foo.yaml", "plan -f foo.yaml",
	} {
		t.Run(args, func(t *testing.T) {
			args := strings.Fields(args)
			if args[0] != "validate" {
				args = append(args, "--server="+server.URL)
			}
			got := runWith(t, "", map[string]string{"foo.yaml": file}, args...)
			var message bytes.Buffer
			if got.err != nil {
				printError(&message, got.err)
			}
			said := got.out + got.errOut + message.String()
			if !strings.Contains(said, "to repair") && args[len(args)-2] != "diff" {
				t.Errorf("it says nothing of it:\n%s", said)
			}
			for line := range strings.Lines(said) {
				if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(strings.TrimSpace(line), "-> to repair") {
					t.Errorf("it prints %q", line)
				}
			}
		})
	}
}
