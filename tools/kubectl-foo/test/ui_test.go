// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// ui is a page of a namespace.
type ui struct {
	namespace
	*testcluster.Process

	address string
}

// startUI starts a page, until the test ends.
func (ns namespace) startUI(args ...string) ui {
	ns.Helper()
	var log testcluster.Log
	command := exec.Command(plugin, append(args, "ui", "--kubeconfig="+kubeconfig, "-n", ns.name)...)
	command.Stdout, command.Stderr = &log, &log
	process, err := testcluster.StartProcess(command)
	footest.Must(ns.T, err)
	ns.Cleanup(func() { process.Stop(limit) })
	if err := log.Await(ns.Context(), process, "http://127.0.0.1", 1); err != nil {
		ns.Fatalf("%v\n%s", err, log.String())
	}
	return ui{ns, process, strings.TrimSpace(log.String())}
}

// get gets something of the page about the Foo "a".
func (u ui) get(path string) io.Reader {
	u.Helper()
	address := strings.Replace(u.address, "/?", "/"+path+"?", 1) + "&name=a&namespace=" + u.name
	ctx, cancel := context.WithTimeout(u.Context(), limit)
	u.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	footest.Must(u.T, err)
	response, err := http.DefaultClient.Do(request)
	footest.Must(u.T, err)
	u.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		u.Fatalf("%s: %s", path, response.Status)
	}
	return response.Body
}

// events opens the stream of the Foo "a".
func (u ui) events() *bufio.Scanner {
	lines := bufio.NewScanner(u.get("events"))
	lines.Buffer(nil, 1<<20)
	return lines
}

// await reads events of a name until one has all texts.
func await(t *testing.T, lines *bufio.Scanner, name string, texts ...string) {
	t.Helper()
	event, last := "", ""
	for lines.Scan() {
		if after, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = after
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && event == name {
			if last = data; !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(data, text) }) {
				return
			}
		}
	}
	t.Fatalf("the stream ended without %q: %v\n%s", texts, lines.Err(), last)
}

// TestThePageFollows checks that what is watched reaches the page, and each change of it.
func TestThePageFollows(t *testing.T) {
	startController(t)
	ns := newNamespace(t, "ui")
	ns.withReadyFoo()
	page := ns.startUI("--audit=" + auditLog)
	lines := page.events()
	await(t, lines, "list", `"state":"running"`, `"items":[{"namespace":"ui","name":"a","status":"True"`)
	await(t, lines, "detail", `"has":[{"kind":"Deployment","name":"web","state":"2 of 2 available","below":[{"kind":"ReplicaSet"`, `"below":[{"kind":"Pod"`,
		`"events":[{`, `"owners":[{`, "create  foos a")
	if picture, err := io.ReadAll(page.get("timeline.svg")); err != nil || !strings.HasPrefix(string(picture), "<svg ") {
		t.Errorf("the picture: %v\n%s", err, picture)
	}
	ns.patchFoo(`{"spec":{"replicas":3}}`)
	await(t, lines, "detail", `"state":"3 of 3 available","below":[{"kind":"Pod"`, `has 3 of 3 Pods available"}`, "patch   foos a")
	ns.kubectl("delete", "foo", "a")
	await(t, lines, "list", `"problems":[],"items":[]`)
	await(t, lines, "detail", `"name":"a","status":"","reason":"","age":"","before":"","after":""`)
}

// awaitPartsOfThePage checks that the page works without some permissions, and says which,
// and that it says how to get a timeline.
func (ns namespace) awaitPartsOfThePage(args ...string) {
	ns.Helper()
	lines := ns.startUI(args...).events()
	await(ns.T, lines, "list", `"state":"unknown"`, `"items":[{`)
	await(ns.T, lines, "detail", `"has":[{"kind":"Deployment"`, "--audit FILE", "the permission to list and watch replicasets.apps is missing",
		"the permission to list and watch pods is missing", "the permission to list and watch events is missing")
}
