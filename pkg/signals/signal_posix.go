//go:build !windows

// SPDX-License-Identifier: Apache-2.0

// The termination signals of POSIX systems.

package signals

import (
	"os"
	"syscall"
)

var shutdownSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}
