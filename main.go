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

// Command sample-controller makes a Deployment for each Foo, the custom resource
// of the API group samplecontroller.k8s.io, keeps the fields that the Foo owns,
// and reports in the Foo's status how it stands.
//
// A Foo is looked at when it changes, when a Deployment that it controls or
// asks for changes, and at each resync. Each time the caches are read, what to
// do is decided by pure functions (decision.go, status.go), then the Deployment
// is written, the one of an earlier name is removed, the status is written, and
// a change of the condition Ready is told by an event; each only if it is needed.
//
// It does not delete the Deployment of a deleted Foo: the garbage collector
// does, by the owner reference. It never touches a Deployment that it does not
// control, unless somebody who may edit that asks it to.
package main

import (
	"errors"
	"os"

	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/pkg/signals"
)

// Exit codes: 0 for a stop that was asked for.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	opts, err := options.Parse(os.Args[1:], os.Stdout)
	if errors.Is(err, options.ErrAnswered) {
		return
	}
	// Also where a flag is wrong, so that the log's reader understands that line.
	if formatErr := opts.Logging.Apply(); err == nil {
		err = formatErr
	}
	if err == nil {
		err = options.LimitMemory()
	}
	if err != nil {
		fail(opts, err, exitUsage)
	}
	if err := run(signals.SetupSignalHandler(), opts); err != nil {
		fail(opts, err, exitFailure)
	}
	klog.Flush()
}

// fail says what is wrong and ends the process.
func fail(opts *options.Options, err error, code int) {
	opts.Logging.Report(err, code)
	klog.Flush()
	os.Exit(code)
}
