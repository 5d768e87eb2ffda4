// SPDX-License-Identifier: Apache-2.0

// The options in comments before blocks.

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// defaultTimeout limits a block without the option timeout.
const defaultTimeout = 2 * time.Minute

// runOptions say how to run a block.
type runOptions struct {
	terminal   string // which shell session; the first is called 1
	background bool
	until      string // for a background block: the text in its output that shows that it is up
	id         string
	fails      bool // whether it must fail
	timeout    time.Duration
	skip       string // why it is not run
	before     beforeOptions
}

// beforeOptions say what to do before a block, or where a comment stands alone.
type beforeOptions struct {
	interrupt bool
	victim    string // id of the background block to interrupt, if it is not the last one
	cluster   bool
}

// printOptions say how to compare what a block printed.
type printOptions struct {
	of       string // id of the block, if it is not the last one
	anyOrder bool
	within   time.Duration
}

// option is KEY, KEY=VALUE or KEY="VALUE".
type option struct{ key, value string }

var optionPattern = regexp.MustCompile(`^([a-z]+)(?:=(?:"([^"]*)"|([^"\s]\S*)))?(?:\s+|$)`)

// The first words of directives.
const (
	wordRun    = "run"
	wordPrints = "prints"
	wordFile   = "file"
	wordPatch  = "patch"
	wordHidden = "hidden"
)

// splitComment returns the first word of a comment, and the rest.
func splitComment(comment string) (word, rest string) {
	comment = strings.TrimSpace(comment)
	end := strings.IndexFunc(comment, func(r rune) bool { return r < 'a' || r > 'z' })
	if end < 0 {
		return comment, ""
	}
	return comment[:end], strings.TrimPrefix(comment[end:], ":")
}

func parseOptions(s string) ([]option, error) {
	var options []option
	for s = strings.TrimSpace(s); s != ""; {
		match := optionPattern.FindStringSubmatch(s)
		if match == nil {
			return nil, fmt.Errorf("%q is not an option: want KEY, KEY=VALUE or KEY=\"VALUE\"", s)
		}
		options = append(options, option{match[1], match[2] + match[3]})
		s = s[len(match[0]):]
	}
	return options, nil
}

// applyRun applies an option of a run comment.
func applyRun(o option, run *runOptions, prints *printOptions) error {
	var err error
	switch o.key {
	case "terminal":
		run.terminal = o.value
	case "background":
		run.background = true
	case "until":
		run.until = o.value
	case "id":
		run.id = o.value
	case "fails":
		run.fails = true
	case "timeout":
		run.timeout, err = time.ParseDuration(o.value)
	case "skip":
		if run.skip = o.value; run.skip == "" {
			err = errors.New("say why: skip=\"reason\"")
		}
	case "cluster":
		run.before.cluster = true
	case "interrupt":
		run.before.interrupt, run.before.victim = true, o.value
	default:
		return applyPrints(o, prints)
	}
	return err
}

// applyPrints applies an option of a prints comment.
func applyPrints(o option, prints *printOptions) error {
	var err error
	switch o.key {
	case "of":
		prints.of = o.value
	case "unordered":
		prints.anyOrder = true
	case "within":
		prints.within, err = time.ParseDuration(o.value)
	default:
		err = fmt.Errorf("unknown option %s", o.key)
	}
	return err
}

// check returns an error for options that contradict one another.
func (run runOptions) check() error {
	switch {
	case run.until != "" && !run.background:
		return errors.New("until= is for background blocks")
	case run.background && run.fails:
		return errors.New("a background block has no exit code to check")
	}
	return nil
}
