// SPDX-License-Identifier: Apache-2.0

// The writes of the audit log, and their pictures.

package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
)

// auditPeriod is how often the audit log is read.
const auditPeriod = 500 * time.Millisecond

// writes follows an audit log.
type writes struct {
	file audit.Log

	mu    sync.Mutex
	log   timeline.Log
	err   error
	drawn map[cache.ObjectName]*drawing
}

// drawing is the picture of a Foo's timeline.
type drawing struct {
	svg, text []byte
	// version is another one if the picture is.
	version string
	err     error
}

func newWrites(path, you string) (*writes, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return &writes{file: audit.Log{Path: path}, log: timeline.Log{You: you}, drawn: map[cache.ObjectName]*drawing{}}, nil
}

// read reads what was written since the last call, and reports whether the page changes. It
// is not called at the same time by several goroutines. Lines that are not events are
// skipped, and make an error.
func (w *writes) read(h *history) (changed bool) {
	fresh, err := w.file.Next()
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = len(fresh) > 0 || (err == nil) != (w.err == nil)
	w.err = err
	for _, write := range fresh {
		w.log.Add(write)
		h.log(write)
	}
	if len(fresh) > 0 {
		clear(w.drawn)
	}
	return changed
}

func (w *writes) problem() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		return ""
	}
	return w.err.Error()
}

// draw draws the timeline of a Foo.
func (w *writes) draw(foo cache.ObjectName) *drawing {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drawn[foo] == nil {
		w.drawn[foo] = drawingOf(&w.log, foo)
	}
	return w.drawn[foo]
}

func drawingOf(log *timeline.Log, foo cache.ObjectName) *drawing {
	selection, err := timeline.ParseSelection("foos/" + foo.Name)
	if err != nil {
		return &drawing{err: err}
	}
	picture, err := log.Of(foo.Namespace, selection).Picture()
	if err != nil {
		return &drawing{err: err}
	}
	var svg, text bytes.Buffer
	if err := picture.WriteSVG(&svg); err != nil {
		return &drawing{err: err}
	}
	if err := picture.WriteText(&text); err != nil {
		return &drawing{err: err}
	}
	hash := sha256.Sum256(svg.Bytes())
	return &drawing{svg: svg.Bytes(), text: text.Bytes(), version: hex.EncodeToString(hash[:8])}
}
