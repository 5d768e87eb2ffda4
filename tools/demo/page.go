// SPDX-License-Identifier: Apache-2.0

// The page of the kubectl plugin.

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	address, err := d.serve(ctx, exec.Command(pluginPath, d.pageFlags()...))
	if err != nil {
		fmt.Fprintf(d.out, "No page: %v\n", err)
		return
	}
	fmt.Fprintf(d.out, "\n%s\n  %s\n\n", d.paint(green, "To see it live in a browser, why and with which writes, open:"), address)
}

// pageFlags are those of the plugin.
func (d *demo) pageFlags() []string {
	return []string{"ui", "--all-namespaces", "--kubeconfig", d.kubeconfig, "--audit", d.audit.Path, "--you", d.log.You}
}

// serve starts a program that prints the address of a page, and returns the address.
func (d *demo) serve(ctx context.Context, command *exec.Cmd) (string, error) {
	log, err := os.Create(filepath.Join(d.dataDir, "logs", "kubectl-foo.log"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	out, in, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer out.Close()
	command.Stdout, command.Stderr = in, log
	// Without a context, as the controller: Ctrl-C ends it in order.
	d.page, err = testcluster.StartProcess(command)
	in.Close()
	if err != nil {
		return "", err
	}
	if limit, ok := ctx.Deadline(); ok {
		_ = out.SetReadDeadline(limit) // without one, it waits for the program's end
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		d.stopPage()
		text, _ := os.ReadFile(log.Name())
		return "", fmt.Errorf("%s printed no address: %s", command.Path, strings.TrimSpace(string(text)))
	}
	return strings.TrimSpace(line), nil
}

// stopPage stops the page, if there is one.
func (d *demo) stopPage() {
	if d.page != nil {
		d.page.Stop(2 * time.Second)
	}
}
