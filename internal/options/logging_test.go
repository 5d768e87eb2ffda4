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

// Tests of the log's flags and formats.

package options

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// parseOnly parses a command line and then restores klog's state, which the flags set.
func parseOnly(t *testing.T, arguments ...string) (*Options, error) {
	t.Helper()
	state := klog.CaptureState()
	defer state.Restore()
	return Parse(arguments, nil)
}

func TestKlogsFlagsAreTakenAsByOtherPrograms(t *testing.T) {
	for _, arguments := range []string{
		"-v=4", "--v=4", "-v 4", "-vmodule=controller=4", "-logtostderr", "-logtostderr=false -log_dir=/var/log", "-alsologtostderr",
		"-stderrthreshold=WARNING", "-log_file=/var/log/controller", "-skip_headers", "-add_dir_header", "-one_output",
		"-logging-format=json -v=4", "-logging-format=json -logtostderr",
	} {
		if _, err := parseOnly(t, strings.Fields(arguments)...); err != nil {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}

func TestJSONIsRefusedWithAFlagThatItCannotHonor(t *testing.T) {
	for argument, part := range map[string]string{
		"-vmodule=controller=4":    "-vmodule=controller=4",
		"-log_dir=/var/log":        "-log_dir=/var/log",
		"-logtostderr=false":       "-logtostderr=false",
		"-stderrthreshold=WARNING": "-stderrthreshold=1",
	} {
		opts, err := parseOnly(t, "-logging-format=json", argument)
		if err == nil || !strings.Contains(err.Error(), part+": has no effect with -logging-format=json") {
			t.Errorf("%s: %v", argument, err)
		}
		if opts == nil || opts.Logging.format != "json" {
			t.Errorf("%s: the options do not say in which format to log the error", argument)
		}
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	for _, format := range []string{"xml", "JSON", ""} {
		_, err := parseOnly(t, "-logging-format="+format)
		if want := `-logging-format="` + format + `": must be text or json`; err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", format, err, want)
		}
	}
}

// -help lists only the klog flags that Kubernetes' components also have.
func TestHelpLeavesOutKlogsFlagsForFiles(t *testing.T) {
	var help strings.Builder
	if _, err := Parse([]string{"-help"}, &help); !errors.Is(err, ErrAnswered) {
		t.Fatal(err)
	}
	for _, name := range []string{"-v value", "-vmodule value", "-logging-format string"} {
		if !strings.Contains(help.String(), "\n  "+name+"\n") {
			t.Errorf("-help does not list %s", name)
		}
	}
	for line := range strings.Lines(help.String()) {
		if strings.HasPrefix(line, "  -") && strings.Contains(line, "_") || strings.Contains(line, "stderr") {
			t.Errorf("-help lists %s", line)
		}
	}
	if !strings.Contains(help.String(), `(default "text")`) {
		t.Error("-help does not say which format is the default")
	}
}
