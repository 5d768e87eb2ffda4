// SPDX-License-Identifier: Apache-2.0

// Linux: a program is killed when this process dies.

package process

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill a command if this process dies.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
