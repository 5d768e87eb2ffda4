// SPDX-License-Identifier: Apache-2.0

// Package process runs the measured programs, and reads their use of CPU and memory from
// /proc.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/prometheus/procfs"

	"example.com/sample-controller/internal/testcluster"
)

// stopGrace is how long a program may take to end after SIGTERM.
const stopGrace = 10 * time.Second

// Process is a running program.
type Process struct {
	*testcluster.Program
	Started time.Time
}

// Start starts a program with output to a file and with env added to the benchmark's own
// environment. The program is killed if the benchmark dies.
func Start(name, log, path string, env []string, args ...string) (*Process, error) {
	command := exec.Command(path, args...) // without a context, because Stop sends SIGTERM first
	command.Env = append(os.Environ(), env...)
	endWithParent(command)
	began := time.Now()
	program, err := testcluster.StartProgram(name, log, command)
	if err != nil {
		return nil, err
	}
	return &Process{Program: program, Started: began}, nil
}

// Stop stops the program with SIGTERM, then with SIGKILL.
func (p *Process) Stop() { p.Program.Stop(stopGrace) }

// Usage is the use of CPU and memory since the start of a process.
type Usage struct {
	// CPU is the time in user and system mode, in steps of 10 ms.
	CPU time.Duration
	// Peak and Resident are bytes of resident memory: the maximum so far, and now.
	Peak, Resident uint64
}

// Usage reads the use of CPU and memory.
func (p *Process) Usage() (Usage, error) {
	if err := p.Err(); err != nil {
		return Usage{}, err
	}
	usage, err := UsageOf(p.ID())
	if err != nil {
		return Usage{}, fmt.Errorf("reading CPU and memory of %s: %w", p.Name, err)
	}
	return usage, nil
}

// UsageOf reads the use of CPU and memory of any process.
func UsageOf(pid int) (Usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	stat, errStat := proc.Stat()
	status, errStatus := proc.NewStatus()
	if err := errors.Join(errStat, errStatus); err != nil {
		return Usage{}, err
	}
	return Usage{
		CPU:      time.Duration(stat.CPUTime() * float64(time.Second)),
		Peak:     status.VmHWM,
		Resident: status.VmRSS,
	}, nil
}
