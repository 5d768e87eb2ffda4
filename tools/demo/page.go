// SPDX-License-Identifier: Apache-2.0

// The page that shows Foos live.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"example.com/sample-controller/test/testcluster"
)

// pluginPath is the kubectl plugin. It is optional: without it, the demo has no page.
const pluginPath = "bin/kubectl-foo"

// startPage starts a page that shows Foos live, and prints its address, unless the demo
// ends by itself. Without a page the demo goes on.
func (d *demo) startPage(ctx context.Context) {
	if _, err := os.Stat(pluginPath); err != nil || d.exit {
		return
	}
	address, err := d.serve(ctx)
	if err != nil {
		fmt.Fprintf(d.out, "No page: %v\n", err)
		return
	}
	fmt.Fprintf(d.out, "\nTo see it live in a browser, why and with which writes, open:\n  %s\n\n", address)
}

// serve starts the page, and returns its address.
func (d *demo) serve(ctx context.Context) (string, error) {
	var output testcluster.Log
	// Without a context, as the controller: Ctrl-C ends it in order.
	command := exec.Command(pluginPath, "ui", "--all-namespaces", "--kubeconfig", d.kubeconfig,
		"--audit", d.audit.Path, "--you", d.log.You)
	command.Stdout, command.Stderr = &output, &output
	page, err := testcluster.StartProcess(command)
	if err != nil {
		return "", err
	}
	d.page = page
	if err := output.Await(ctx, page, "http://", 1); err != nil {
		d.stopPage()
		return "", fmt.Errorf("%w\n%s", err, output.String())
	}
	return strings.TrimSpace(output.Lines("http://")[0]), nil
}

// stopPage stops the page, if there is one.
func (d *demo) stopPage() {
	if d.page != nil {
		d.page.Stop(2 * time.Second)
	}
}
