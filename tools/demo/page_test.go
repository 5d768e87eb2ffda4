// SPDX-License-Identifier: Apache-2.0

// Tests of the page.

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/tools/internal/timeline"
)

func TestThePagesAddress(t *testing.T) {
	for name, test := range map[string]struct{ script, address, err string }{
		"a page":         {"echo http://127.0.0.1:1/?token=x; exec sleep 60", "http://127.0.0.1:1/?token=x", ""},
		"a failure":      {"echo no CRD >&2; exit 2", "", "printed no address: no CRD"},
		"nothing":        {"exec sleep 60", "", "printed no address"},
		"a part of line": {"printf http; exec sleep 60", "", "printed no address"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &demo{options: &options{}, dataDir: t.TempDir(), out: &bytes.Buffer{}}
			if err := os.Mkdir(filepath.Join(d.dataDir, "logs"), 0o700); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			address, err := d.serve(ctx, exec.Command("/bin/sh", "-c", test.script))
			if err != nil && !d.page.HasEnded() {
				t.Error("the program still runs")
			}
			d.stopPage()
			if address != test.address || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v", address, err)
			}
		})
	}
}

func TestADemoThatEndsHasNoPage(t *testing.T) {
	for name, test := range map[string]struct {
		built, exit, want bool
	}{
		"with the plugin": {true, false, true}, "without it": {false, false, false}, "a demo that ends": {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dataDir := t.TempDir()
			t.Chdir(t.TempDir())
			for _, folder := range []string{"bin", filepath.Join(dataDir, "logs")} {
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if test.built {
				if err := os.WriteFile(pluginPath, []byte("#!/bin/sh\necho \"http://page/$*\"; exec sleep 60\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			d := &demo{options: &options{exit: test.exit}, dataDir: dataDir, out: &out, kubeconfig: "/k", log: timeline.Log{You: "me"}}
			d.startPage(t.Context())
			d.stopPage()
			if got := strings.Contains(out.String(), "http://page/ui --all-namespaces --kubeconfig /k --audit "); got != test.want || !got && out.Len() > 0 {
				t.Errorf("it printed %q", out.String())
			}
		})
	}
}
