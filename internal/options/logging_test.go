// SPDX-License-Identifier: Apache-2.0

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

func TestOfKlogsFlagsThoseOfKubernetesComponentsRemain(t *testing.T) {
	for _, arguments := range []string{"-v=4", "--v=4", "-v 4", "-vmodule=controller=4", "-logging-format=json -v=4"} {
		if _, err := parseOnly(t, strings.Fields(arguments)...); err != nil {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	for _, argument := range []string{"-logtostderr", "-logtostderr=false", "-log_dir=/var/log", "-log_file=/var/log/controller", "-stderrthreshold=WARNING"} {
		if _, err := parseOnly(t, argument); err == nil || !strings.Contains(err.Error(), "not defined") {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

func TestJSONIsRefusedWithAFlagThatItCannotHonor(t *testing.T) {
	opts, err := parseOnly(t, "-logging-format=json", "-vmodule=controller=4")
	if err == nil || err.Error() != "-vmodule=controller=4: has no effect with -logging-format=json" {
		t.Error(err)
	}
	if opts == nil || opts.Logging.format != "json" {
		t.Error("the options do not say in which format to log the error")
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

func TestHelpListsTheFlagsOfTheLog(t *testing.T) {
	var help strings.Builder
	if _, err := Parse([]string{"-help"}, &help); !errors.Is(err, ErrAnswered) {
		t.Fatal(err)
	}
	for _, name := range []string{"-v value", "-vmodule value", "-logging-format string"} {
		if !strings.Contains(help.String(), "\n  "+name+"\n") {
			t.Errorf("-help does not list %s", name)
		}
	}
	if !strings.Contains(help.String(), `(default "text")`) {
		t.Error("-help does not say which format is the default")
	}
}
