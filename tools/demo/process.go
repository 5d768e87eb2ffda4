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

// The programs that the demo starts.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// stopGrace is how long the controller gets to end by itself.
	stopGrace = 5 * time.Second
	// logLines is how much of its log is shown when it dies.
	logLines = 20
)

// process is a program that should run until it is stopped.
type process struct {
	name string
	// log is the path of the file with what it prints; "" where that goes to the terminal.
	log  string
	stop context.CancelFunc
	// ended is closed when the program has ended; err then says how.
	ended chan struct{}
	err   error
}

// startProcess starts a program.
func startProcess(name, log, path string, args ...string) (*process, error) {
	// It is stopped by stop, later than a Ctrl-C cancels what else is going on.
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if log != "" {
		file, err := os.Create(log)
		if err != nil {
			stop()
			return nil, err
		}
		defer file.Close()
		cmd.Stdout, cmd.Stderr = file, file
	}
	if err := cmd.Start(); err != nil {
		stop()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, log: log, stop: stop, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // The state says all that the error does.
		p.err = p.explain(cmd.ProcessState)
		close(p.ended)
	}()
	return p, nil
}

// explain says that the program ended, with the end of its log.
func (p *process) explain(state *os.ProcessState) error {
	message := fmt.Sprintf("%s ended by itself (%s)", p.name, state)
	if p.log == "" {
		return errors.New(message)
	}
	data, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s; its log cannot be read: %w", message, err)
	}
	return fmt.Errorf("%s; the end of its log:\n  %s", message, strings.Join(lastLines(string(data), logLines), "\n  "))
}

// close stops the program and waits until it has ended.
func (p *process) close() {
	p.stop()
	<-p.ended
}

func lastLines(text string, n int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}

// kubectl runs kubectl, having shown the command as one would type it. What kubectl prints is shown only if it
// fails.
func kubectl(ctx context.Context, out io.Writer, args ...string) error {
	typed := "kubectl " + strings.Join(args, " ")
	fmt.Fprintln(out, "$ "+typed)
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, devclusterPath, append([]string{"kubectl"}, args...)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", typed, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", typed, err, strings.TrimSpace(output.String()))
	}
	return nil
}
