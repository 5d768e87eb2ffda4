// SPDX-License-Identifier: Apache-2.0

// The picture of the timeline.

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"example.com/sample-controller/internal/audit"
	drawing "example.com/sample-controller/tools/internal/timeline"
)

// draw draws the writes of Foos in the audit log so far, and prints where the picture is.
func (d *demo) draw() error {
	if d.picture == "" {
		return nil
	}
	document, err := drawLog(d.audit.Path, d.narrator.self)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", d.picture, err)
	}
	if err := os.MkdirAll(filepath.Dir(d.picture), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(d.picture, document, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe same as a picture, for a browser: %s\n", quote(d.picture))
	return nil
}

func drawLog(path, self string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	log := drawing.Log{You: self}
	if _, err := audit.Read(file, log.Add); err != nil {
		return nil, err
	}
	picture, err := log.Picture()
	if err != nil {
		return nil, err
	}
	var document bytes.Buffer
	err = picture.WriteSVG(&document)
	return document.Bytes(), err
}
