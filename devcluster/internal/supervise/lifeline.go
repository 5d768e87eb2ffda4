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

package supervise

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
)

// lifelineEnv names the file descriptor on which a child hears of its supervisor's end.
const lifelineEnv = "DEVCLUSTER_LIFELINE_FD"

// lifeline is a pipe that nobody writes to. Each child holds the read end; the supervisor alone holds the
// write end, which the operating system closes however the supervisor dies, SIGKILL included.
type lifeline struct {
	read, write *os.File
}

func newLifeline() (*lifeline, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the pipe that ends the components with the supervisor: %w", err)
	}
	return &lifeline{read: r, write: w}, nil
}

func (l *lifeline) close() {
	_ = l.read.Close()
	_ = l.write.Close()
}

// OnSupervisorExit arranges for f to be called when the supervisor that started this process is gone. It must
// be the first thing that main does. In a process that no supervisor started it does nothing.
func OnSupervisorExit(f func()) {
	fd, err := strconv.Atoi(os.Getenv(lifelineEnv))
	if err != nil {
		return
	}
	// Neither the variable nor the descriptor is for this process' own children.
	_ = os.Unsetenv(lifelineEnv)
	syscall.CloseOnExec(fd)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(uintptr(fd), "lifeline"))
		f()
	}()
}
