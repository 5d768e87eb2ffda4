// SPDX-License-Identifier: Apache-2.0

// kubectl.

package component

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // for kubeconfigs of other clusters
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func kubectl() int {
	resetGlobalFlags()
	// The command is built before cobra parses the flags, and building it can log:
	// plugins, .kuberc.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints the error and exits with kubectl's code for it
	}
	return 0
}
