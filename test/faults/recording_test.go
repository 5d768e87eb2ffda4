// SPDX-License-Identifier: Apache-2.0

// The record of all statuses that the Foos of a trial had, and the check that each
// Ready=True in it was true.

package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"example.com/sample-controller/test/oracle"
)

// statusRecord records every status of the Foos in a trial's namespace: the second
// oracle. It watches the API server directly, not through the proxy. Only subjects that
// report conditions have one.
type statusRecord struct {
	mu        sync.Mutex
	recording *oracle.Recording
	// found holds the false statuses of recordings that have ended, and the errors of
	// recording.
	found []error
}

// startRecording begins a recording.
func (tr *trial) startRecording(ctx context.Context) error {
	if !tr.subject.conditions {
		return nil
	}
	recording, err := oracle.Record(ctx, tr.cluster.kube, tr.cluster.foos, tr.ns)
	if err != nil {
		return err
	}
	tr.statuses.mu.Lock()
	defer tr.statuses.mu.Unlock()
	tr.statuses.recording = recording
	return nil
}

// endRecording ends the recording and keeps the false statuses in it. A gap in the
// recording is an error, because a false status may have been missed.
func (tr *trial) endRecording(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errTimeout)
	defer cancel()
	tr.statuses.mu.Lock()
	defer tr.statuses.mu.Unlock()
	if tr.statuses.recording == nil {
		return
	}
	falseStatuses, err := tr.statuses.recording.Lies(ctx)
	if err != nil {
		tr.statuses.found = append(tr.statuses.found, fmt.Errorf("the record of the statuses is incomplete: %w", err))
	}
	for _, sentence := range falseStatuses {
		tr.statuses.found = append(tr.statuses.found, errors.New(sentence))
	}
	tr.statuses.recording.Stop()
	tr.statuses.recording = nil
}

// withoutRecording runs do, which ends all watches, between two recordings. What was
// recorded before is checked first.
func (tr *trial) withoutRecording(ctx context.Context, do func() error) error {
	tr.endRecording(ctx)
	err := do()
	if recordErr := tr.startRecording(ctx); recordErr != nil {
		tr.statuses.mu.Lock()
		defer tr.statuses.mu.Unlock()
		tr.statuses.found = append(tr.statuses.found, recordErr)
	}
	return err
}

// falseStatuses ends the recording, and returns the statuses in all recordings that were
// false.
func (tr *trial) falseStatuses(ctx context.Context) error {
	tr.endRecording(ctx)
	tr.statuses.mu.Lock()
	defer tr.statuses.mu.Unlock()
	return errors.Join(tr.statuses.found...)
}

// stopRecording ends the recording without checking it.
func (tr *trial) stopRecording() {
	tr.statuses.mu.Lock()
	defer tr.statuses.mu.Unlock()
	if tr.statuses.recording != nil {
		tr.statuses.recording.Stop()
	}
}
