// SPDX-License-Identifier: Apache-2.0

// The lifeline: how processes notice that their supervisor has died.

package supervise

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
)

// lifelineEnv names the file descriptor that a child watches for the end of its
// supervisor.
const lifelineEnv = "DEVCLUSTER_LIFELINE_FD"

// lifeline is a pipe that nobody writes to. Each child holds the read end. Only the
// supervisor holds the write end, which the operating system closes in whatever way the
// supervisor dies, including SIGKILL.
type lifeline struct {
	read, write *os.File
}

func newLifeline() (*lifeline, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("creating the lifeline of the components: %w", err)
	}
	return &lifeline{read: r, write: w}, nil
}

func (l *lifeline) close() {
	_ = l.read.Close()
	_ = l.write.Close()
}

// OnSupervisorExit calls f when the supervisor that started this process has died. main
// must call it before anything else. It does nothing in a process without a supervisor.
func OnSupervisorExit(f func()) {
	fd, err := strconv.Atoi(os.Getenv(lifelineEnv))
	if err != nil {
		return
	}
	// The variable and the descriptor are not for this process' children.
	_ = os.Unsetenv(lifelineEnv)
	syscall.CloseOnExec(fd)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(uintptr(fd), "lifeline"))
		f()
	}()
}
