// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/sample-controller/tools/internal/printable"
)

// runWith runs the command with standard input, and returns its output, including the error.
func runWith(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := newCommand(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &out})
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		printError(&out, err)
	}
	return out.String(), err
}

const web = `apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata:
  name: a
spec:
  deploymentName: web
  replicas: 2
`

// TestRefusals checks the errors of plan about invalid flags and files.
func TestRefusals(t *testing.T) {
	server := serverThatSays(t, `"x"`)
	for name, test := range map[string]struct{ args, in, want string }{
		"a format":                {"plan -o xml", "", `--output="xml": must be one of`},
		"names and -A":            {"plan a -A", "", "use either names, -f or -A"},
		"a command":               {"foo", "", `unknown command "foo" for`},
		"an unknown name":         {"plan b", "", `there is no Foo "b" in the namespace "default"`},
		"no such file":            {"plan -f none.yaml", "", `the path "none.yaml" does not exist`},
		"another kind":            {"plan -f -", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", `standard input: this is a Pod of "v1", not a Foo`},
		"an unknown field":        {"plan -f -", strings.Replace(web, "replicas", "replica", 1), `unknown field "spec.replica"`},
		"no name":                 {"plan -f -", strings.Replace(web, "name: a", "labels: {}", 1), "the Foo has no metadata.name"},
		"of another namespace":    {"plan -f -", strings.Replace(web, "name: a", "name: a\n  namespace: b", 1), `is in the namespace "b", not "default"`},
		"a list with a wrong one": {"plan -f -", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n", "this is a Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(strings.Fields(test.args), "--server="+server)
			if _, err := runWith(t, test.in, args...); err == nil || errors.Is(err, errChanges) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// hostile controls a terminal, and looks like advice.
const hostile = "\x1b]52;c;AAAA\a\r\n    -> to repair: run this\u009b2J\x7f\u202e"

// hostileAnswers are an API server's responses to GET. HOSTILE stands for the text.
var hostileAnswers = map[string]string{
	"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos": `{"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "FooList", "items": [` + hostileFoo + `]}`,
	"/apis/apps/v1/namespaces/default/deployments": `{"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{"metadata": {"name": "web", "namespace": "default",
		"ownerReferences": [{"apiVersion": "v1", "kind": HOSTILE, "name": HOSTILE, "uid": "2", "controller": true}]}}]}`,
	"/apis/apps/v1/namespaces/default/replicasets": `{"apiVersion": "apps/v1", "kind": "ReplicaSetList"}`,
	"/api/v1/namespaces/default/pods":              `{"apiVersion": "v1", "kind": "PodList"}`,
	"/api/v1/namespaces/default/events":            `{"apiVersion": "v1", "kind": "EventList", "items": [{"metadata": {"name": "x", "namespace": "default"}, "involvedObject": {"uid": "1", "kind": "Foo", "name": "a"}, "reason": HOSTILE, "message": HOSTILE}]}`,
}

const hostileFoo = `{"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "1"},
	"spec": {"deploymentName": "web", "replicas": 1}, "status": {"conditions": [{"type": "Ready", "status": "False", "reason": HOSTILE, "message": HOSTILE}]}}`

// serverThatSays returns the address of an API server with these responses, and unsets KUBECONFIG.
func serverThatSays(t *testing.T, text string) string {
	t.Helper()
	t.Setenv("KUBECONFIG", os.DevNull)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := hostileAnswers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet || answer == "" {
			w.WriteHeader(http.StatusInternalServerError)
			answer = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "InternalError", "code": 500, "message": HOSTILE}`
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(answer, "HOSTILE", text)))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestNoCommandLetsOthersControlTheTerminal(t *testing.T) {
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	server := serverThatSays(t, string(text))
	file := strings.Replace(web, "name: a", "name: "+string(printable.EscapeJSON(text)), 1)
	for _, args := range []string{
		"why a", "why a -o json", "why a -n b", "adopt", "plan", "plan -o json", "plan -f -",
	} {
		t.Run(args, func(t *testing.T) {
			args := append(strings.Fields(args), "--server="+server)
			said, _ := runWith(t, file, args...)
			if !strings.Contains(said, "to repair") {
				t.Errorf("the text is not in the output:\n%s", said)
			}
			for line := range strings.Lines(said) {
				if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(strings.TrimSpace(line), "-> to repair") {
					t.Errorf("it prints %q", line)
				}
			}
		})
	}
}
