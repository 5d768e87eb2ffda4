// SPDX-License-Identifier: Apache-2.0

// The machine and the versions of a measurement.

package measure

import (
	"bytes"
	"context"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"example.com/sample-controller/test/bench/internal/results"
)

// DescribeMachine describes this machine. It leaves empty what it can't read.
func DescribeMachine() results.Machine {
	m := results.Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
		m.CPU = cpus[0].ModelName
	}
	if memory, err := fs.Meminfo(); err == nil && memory.MemTotal != nil {
		m.MemoryGiB = math.Round(float64(*memory.MemTotal)/(1<<20)*10) / 10
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.OS += ", kernel " + strings.TrimSpace(string(release))
	}
	return m
}

// Versions returns the versions of Go, of the components of devcluster, and of the
// controller of this repository.
func Versions(ctx context.Context, devcluster, ours string) map[string]string {
	versions := map[string]string{"Go": runtime.Version()}
	if out, err := exec.CommandContext(ctx, devcluster, "version").Output(); err == nil {
		for line := range bytes.Lines(out) {
			if fields := strings.Fields(string(line)); len(fields) == 2 {
				versions[fields[0]] = fields[1]
			}
		}
	}
	if out, err := exec.CommandContext(ctx, ours, "-version").Output(); err == nil {
		for line := range bytes.Lines(out) {
			if commit, ok := strings.CutPrefix(string(line), "commit "); ok {
				versions["ours"] = "commit " + strings.TrimSpace(commit)
			}
		}
	}
	return versions
}
