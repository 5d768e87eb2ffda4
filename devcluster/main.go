/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
