// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"example.com/sample-controller/test/bench/internal/results"
)

// TestTry: the others follow a measurement that fails, and their results are kept. None follows
// an interruption, and no result of the interrupted one is kept.
func TestTry(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	r := &runner{found: results.New(), file: filepath.Join(t.TempDir(), "results.json")}
	measure := func(name string, then func(), err error) {
		r.try(ctx, name, func() (string, error) {
			r.found.Versions[name] = "measured"
			then()
			return "", err
		})
	}
	measure("fails", func() {}, errors.New("too slow"))
	measure("follows", func() {}, nil)
	measure("interrupted", interrupt, nil)
	measure("too late", func() {}, nil)
	read, err := results.Read(r.file)
	if err != nil || len(r.failed) != 1 || len(read.Versions) != 2 || len(r.found.Versions) != 3 {
		t.Errorf("got %v and %v, failed %v and %v", r.found.Versions, read.Versions, r.failed, err)
	}
}
