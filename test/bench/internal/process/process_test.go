// SPDX-License-Identifier: Apache-2.0

// Test of the environment of a program.

package process

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStartSetsTheEnvironment(t *testing.T) {
	t.Setenv("GOMAXPROCS", "2")
	for want, env := range map[string][]string{"1\n": {"GOMAXPROCS=1"}, "2\n": nil} {
		log := filepath.Join(t.TempDir(), "log")
		p, err := Start("sh", log, "sh", env, "-c", "echo $GOMAXPROCS")
		if err != nil {
			t.Fatal(err)
		}
		<-p.Ended()
		if printed, err := os.ReadFile(log); string(printed) != want || err != nil {
			t.Errorf("with %q it printed %q (%v), want %q", env, printed, err, want)
		}
	}
}
