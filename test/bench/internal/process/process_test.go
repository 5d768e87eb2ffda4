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
