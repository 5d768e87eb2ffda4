// SPDX-License-Identifier: Apache-2.0

// Command devcluster is a Kubernetes cluster for development in one program: the
// supervisor of a control plane and, depending on its first argument, each component of
// it.
package main

import (
	"os"

	"example.com/sample-controller/devcluster/internal/command"
	"example.com/sample-controller/devcluster/internal/component"
	"example.com/sample-controller/devcluster/internal/supervise"
)

func main() {
	args := os.Args[1:]
	if len(args) > 1 && args[0] == supervise.ExecSubcommand {
		os.Exit(supervise.Exec(args[1:]))
	}
	supervise.OnSupervisorExit(func() { os.Exit(1) })
	os.Exit(run(args))
}

func run(args []string) int {
	if len(args) > 0 {
		if code, found := component.Run(args[0], args[1:]); found {
			return code
		}
	}
	return command.Main(args)
}
