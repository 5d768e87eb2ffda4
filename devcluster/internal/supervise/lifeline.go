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
