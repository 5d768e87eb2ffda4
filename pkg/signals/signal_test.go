//go:build !windows

// SPDX-License-Identifier: Apache-2.0

// Tests of the first and the second signal, sent to a process.

package signals

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// helperVariable makes the test binary run as the program that receives the signals.
const helperVariable = "SIGNALS_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		helper()
	}
	os.Exit(m.Run())
}

// helper prints when it is ready and when its context ends, and never exits by itself.
func helper() {
	ctx := SetupSignalHandler()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("draining")
	select {}
}

func TestFirstSignalCancelsAndSecondExits(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sent.String(), func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0])
			command.Env = append(os.Environ(), helperVariable+"=1")
			output, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(output)
			for _, want := range []string{"ready", "draining"} {
				if !lines.Scan() || lines.Text() != want {
					t.Fatalf("the program printed %q, not %q", lines.Text(), want)
				}
				if err := command.Process.Signal(sent); err != nil {
					t.Fatal(err)
				}
			}
			var exit *exec.ExitError
			if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("after the second signal the program ended with %v, not with exit code 1", err)
			}
		})
	}
}
