// SPDX-License-Identifier: Apache-2.0

// The flags of the log, two of klog's among them, and its two formats.

package options

import (
	"flag"
	"fmt"
	"os"

	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the format json
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/names"
)

// Formats of the log.
const (
	formatText = logsapi.DefaultLogFormat
	formatJSON = logsapi.JSONLogFormat
)

// Logging holds the flags of the log. The values of klog's own flags are in klog.
//
// The library of Kubernetes' components writes JSON, so that tools which read the
// components' logs can read this one. It adds 0.85 MiB to the program, 3 %, including
// cobra, which the library's feature gates import. klog itself still writes text.
type Logging struct {
	format string
}

// klogUsage has the usage of klog's flags that this program has: those that Kubernetes'
// components still have. With the others, klog would write files.
var klogUsage = map[string]string{
	"v":       "Log verbosity: 0 for start and stop, 2 to add each write, 4 to add details. From 8 on, the log has the bodies of requests, and the tokens of those who scrape the metrics.",
	"vmodule": "Log verbosity by source file, as PATTERN=N,... Only with -logging-format=text.",
}

func (o *Logging) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.format, "logging-format", formatText,
		"Format of the log on standard error: text, or json with one object per line.")
	for _, f := range klogFlags() {
		flags.Var(f.Value, f.Name, klogUsage[f.Name])
	}
}

// klogFlags returns klog's flags -v and -vmodule.
func klogFlags() []*flag.Flag {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	var all []*flag.Flag
	for name := range klogUsage {
		all = append(all, flags.Lookup(name))
	}
	return all
}

// problems describes each flag with an invalid value. JSON has one level for all files.
func (o *Logging) problems(flags *flag.FlagSet) []string {
	switch o.format {
	case formatText:
		return nil
	case formatJSON:
	default:
		return []string{fmt.Sprintf("-logging-format=%q: must be %s or %s", o.format, formatText, formatJSON)}
	}
	if value := flags.Lookup("vmodule").Value.String(); value != "" {
		return []string{fmt.Sprintf("-vmodule=%s: has no effect with -logging-format=%s", value, o.format)}
	}
	return nil
}

// Apply sets the format of everything that logs by klog, slog or the package log. Call it
// once, before the first line. It ignores an unknown format, which problems reports.
func (o *Logging) Apply() error {
	if o.format != formatJSON {
		return nil
	}
	config := logsapi.NewLoggingConfiguration()
	config.Format = o.format
	for _, f := range klogFlags() {
		var err error
		switch f.Name {
		case "v":
			err = logsapi.VerbosityLevelPflag(&config.Verbosity).Set(f.Value.String())
		case "vmodule":
			// The library refuses -vmodule with JSON, and problems reports it.
			err = f.Value.Set("")
		}
		if err != nil {
			return fmt.Errorf("-%s: %w", f.Name, err)
		}
	}
	return logsapi.ValidateAndApply(config, nil)
}

// Report logs, in the format of the log, the error that ends the process.
func (o *Logging) Report(err error, exitCode int) {
	if o.format == formatJSON {
		klog.Background().WithCallDepth(1).Error(err, "Exiting", "exitCode", exitCode)
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", names.Controller, err)
}
