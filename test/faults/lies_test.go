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

package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"example.com/sample-controller/test/oracle"
)

// record is what the Foos of a trial's namespace say, at every moment: the
// second oracle. It is kept of subjects that have conditions, and taken from the
// API server itself, whatever the proxy does to the controller.
type record struct {
	mu        sync.Mutex
	recording *oracle.Recording
	// found are the lies of recordings that are over, and what went wrong with them.
	found []error
}

// record begins a recording.
func (tr *trial) record(ctx context.Context) error {
	if !tr.subject.conditions {
		return nil
	}
	recording, err := oracle.Record(ctx, tr.cluster.kube, tr.cluster.foos, tr.ns)
	if err != nil {
		return err
	}
	tr.told.mu.Lock()
	defer tr.told.mu.Unlock()
	tr.told.recording = recording
	return nil
}

// endRecording ends the recording, and keeps what in it was not true. A gap in
// it is an error, too: nobody knows what was said meanwhile.
func (tr *trial) endRecording(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	tr.told.mu.Lock()
	defer tr.told.mu.Unlock()
	if tr.told.recording == nil {
		return
	}
	lies, err := tr.told.recording.Lies(ctx)
	if err != nil {
		tr.told.found = append(tr.told.found, fmt.Errorf("the record of what the Foos said is not whole: %w", err))
	}
	for _, lie := range lies {
		tr.told.found = append(tr.told.found, errors.New(lie))
	}
	tr.told.recording.Stop()
	tr.told.recording = nil
}

// unrecorded does what no watch outlives. What was said until then is judged,
// and a new recording begins.
func (tr *trial) unrecorded(ctx context.Context, do func() error) error {
	tr.endRecording(ctx)
	err := do()
	if recordErr := tr.record(ctx); recordErr != nil {
		tr.told.mu.Lock()
		defer tr.told.mu.Unlock()
		tr.told.found = append(tr.told.found, recordErr)
	}
	return err
}

// lies ends the record, and returns what in it was not true.
func (tr *trial) lies(ctx context.Context) error {
	tr.endRecording(ctx)
	tr.told.mu.Lock()
	defer tr.told.mu.Unlock()
	return errors.Join(tr.told.found...)
}

// stopRecording ends the recording unjudged.
func (tr *trial) stopRecording() {
	tr.told.mu.Lock()
	defer tr.told.mu.Unlock()
	if tr.told.recording != nil {
		tr.told.recording.Stop()
	}
}
