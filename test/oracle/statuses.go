// SPDX-License-Identifier: Apache-2.0

// The recorded statuses as files, for test/waiters.

package oracle

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/test/footest"
)

// statusFolder is the environment variable with the folder for the recorded statuses.
const statusFolder = "RECORDED_STATUSES"

// recorded is a state of a Foo as test/waiters reads it.
type recorded struct {
	// CarriedOut is true if there was a moment since the Foo's generation began at which the
	// Foo had all that it asks for, ready.
	CarriedOut bool           `json:"carriedOut"`
	Foo        map[string]any `json:"foo"`
}

// KeepStatuses writes each distinct state of a Foo into the folder that the environment
// variable RECORDED_STATUSES names, if it is set. It keeps what tools may judge by: the
// generation, the spec and the status, without times.
func (h *History) KeepStatuses() error { return h.keepStatuses(math.MaxUint64) }

func (h *History) keepStatuses(upTo uint64) error {
	folder := os.Getenv(statusFolder)
	if folder == "" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for states := range h.ofFoos(upTo) {
		for s, began := range withBegin(states) {
			if s.deleted || isOlderThanRecord(states, began) {
				continue
			}
			if err := keep(folder, s.object, len(h.unmet(s.object, began, s.from)) == 0); err != nil {
				return fmt.Errorf("keeping a recorded status: %w", err)
			}
		}
	}
	return nil
}

// keep writes a state into a file that is named by its content, so that each is kept once.
func keep(folder string, foo footest.Object, carriedOut bool) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(foo)
	if err != nil {
		return err
	}
	owner := footest.OwnerOf(foo)
	fields["apiVersion"], fields["kind"] = owner.Resource.GroupVersion().String(), owner.Kind.Kind
	metadata := map[string]any{"name": "recorded", "namespace": "recorded", "generation": foo.GetGeneration()}
	if foo.GetDeletionTimestamp() != nil {
		metadata["deletionTimestamp"] = "2026-11-21T12:00:00Z"
	}
	fields["metadata"] = metadata
	status, _ := fields["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, condition := range conditions {
		delete(condition.(map[string]any), "lastTransitionTime")
	}
	text, err := json.MarshalIndent(recorded{carriedOut, fields}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, fmt.Sprintf("%x.json", sha256.Sum256(text))), text, 0o600)
}
