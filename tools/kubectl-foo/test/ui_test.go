// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
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
	command := exec.Command(env.plugin, append(args, "ui", "--kubeconfig="+env.Kubeconfig, "-n", ns.name)...)
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

// shown is what the page gets about the Foo "a", or about all.
type shown struct {
	Why      *explain.Explanation
	After    string
	Timeline struct {
		Version       int
		Text, Problem string
	}
	Controller explain.Controller
	Items      []struct{ Status string }
	Problems   []string
}

// events opens the stream of the Foo "a".
func (u ui) events() *bufio.Scanner {
	lines := bufio.NewScanner(u.get("events"))
	lines.Buffer(nil, 1<<20)
	return lines
}

// await reads events of a name until one is as wanted.
func await(t *testing.T, lines *bufio.Scanner, name string, isWanted func(s *shown) bool) *shown {
	t.Helper()
	event, last := "", ""
	for lines.Scan() {
		if after, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = after
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && event == name {
			s := &shown{}
			footest.Must(t, json.Unmarshal([]byte(data), s))
			if last = data; isWanted(s) {
				return s
			}
		}
	}
	t.Fatalf("the stream ended: %v\n%s", lines.Err(), last)
	return nil
}

// TestThePageFollows checks that what is watched reaches the page, and each change of it.
func TestThePageFollows(t *testing.T) {
	startController(t)
	ns := newNamespace(t, "ui")
	ns.withReadyFoo()
	page := ns.startUI("--audit=" + env.AuditLog())
	lines := page.events()
	await(t, lines, "list", func(s *shown) bool {
		return s.Controller.State == "running" && len(s.Items) == 1 && s.Items[0].Status == "True"
	})
	first := await(t, lines, "detail", func(s *shown) bool {
		return s.Why != nil && len(s.Why.Has) == 1 && len(s.Why.Has[0].Below) == 1 && len(s.Why.Has[0].Below[0].Below) == 2 &&
			len(s.Why.Events) > 0 && len(s.Why.Owners) == 1 && strings.Contains(s.Timeline.Text, "create  foos a")
	})
	if picture, err := io.ReadAll(page.get("timeline.svg")); err != nil || !strings.HasPrefix(string(picture), "<svg ") {
		t.Errorf("the picture: %v\n%s", err, picture)
	}
	ns.patchFoo(`{"spec":{"replicas":3}}`)
	await(t, lines, "detail", func(s *shown) bool {
		return len(s.Why.Has[0].Below[0].Below) == 3 && strings.Contains(s.Why.State.Text, "3 of 3") && s.Timeline.Version > first.Timeline.Version
	})
	ns.kubectl("delete", "foo", "a")
	await(t, lines, "list", func(s *shown) bool { return len(s.Items) == 0 && len(s.Problems) == 0 })
	await(t, lines, "detail", func(s *shown) bool { return s.Why == nil })
}

// awaitPartsOfThePage checks that the page works without some permissions, and says which,
// and that it says how to get a timeline.
func (ns namespace) awaitPartsOfThePage(args ...string) {
	ns.Helper()
	lines := ns.startUI(args...).events()
	await(ns.T, lines, "list", func(s *shown) bool { return s.Controller.State == "unknown" && len(s.Items) == 1 })
	await(ns.T, lines, "detail", func(s *shown) bool {
		missing := fmt.Sprint(s.Why.Missing)
		for _, resource := range []string{"replicasets.apps", "pods", "events"} {
			if !strings.Contains(missing, "the permission to list and watch "+resource+" is missing") {
				return false
			}
		}
		return len(s.Why.Has) == 1 && s.Why.Has[0].Below == nil && strings.Contains(s.Timeline.Problem, "--audit FILE")
	})
}
