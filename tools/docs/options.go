// SPDX-License-Identifier: Apache-2.0

// The options in directives. README.md explains them.

package main

import (
	"errors"
	"flag"
	"io"
	"regexp"
	"strings"
	"time"
)

// options are those of a block of commands, and of the output with which to compare it.
type options struct {
	skip       string // why it is not run
	fails      bool
	timeout    time.Duration
	terminal   string // which shell session; the first is called 1
	background bool
	until      string // the text in the output of a background block that shows that it is up
	cluster    bool
	interrupt  string // id of a background block, or lastBlock
	id         string

	of        string // id of the block that prints it, if it is not the last one
	unordered bool
	within    time.Duration
}

// noOptions are those of a block without a comment.
var noOptions = options{terminal: "1", timeout: 2 * time.Minute}

// lastBlock is the value of interrupt without a value.
const lastBlock = "true"

// word matches KEY, KEY=VALUE or KEY="VALUE WITH SPACES".
var word = regexp.MustCompile(`(?:[^\s"]|"[^"]*")+`)

// parseOptions reads the options of a comment that begins with run or prints.
func parseOptions(directive, text string) (options, error) {
	o := noOptions
	set := flag.NewFlagSet(directive, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	if directive == wordRun {
		set.Func("skip", "", func(reason string) error {
			if o.skip = reason; reason == "" {
				return errors.New("say why: skip=\"reason\"")
			}
			return nil
		})
		set.BoolVar(&o.fails, "fails", o.fails, "")
		set.DurationVar(&o.timeout, "timeout", o.timeout, "")
		set.StringVar(&o.terminal, "terminal", o.terminal, "")
		set.BoolVar(&o.background, "background", o.background, "")
		set.StringVar(&o.until, "until", o.until, "")
		set.BoolVar(&o.cluster, "cluster", o.cluster, "")
		set.BoolFunc("interrupt", "", func(id string) error { o.interrupt = id; return nil })
		set.StringVar(&o.id, "id", o.id, "")
	}
	set.StringVar(&o.of, "of", o.of, "")
	set.BoolVar(&o.unordered, "unordered", o.unordered, "")
	set.DurationVar(&o.within, "within", o.within, "")
	for _, option := range word.FindAllString(text, -1) {
		// One at a time, because otherwise an option without a value would take the next one.
		if err := set.Parse([]string{"-" + strings.ReplaceAll(option, `"`, "")}); err != nil {
			return o, err
		}
	}
	switch {
	case o.until != "" && !o.background:
		return o, errors.New("until= is for background blocks")
	case o.background && o.fails:
		return o, errors.New("a background block has no exit code to check")
	}
	return o, nil
}

// needNoBlock reports whether the options are cluster and interrupt, which may have a
// comment of their own.
func (o options) needNoBlock() bool {
	o.cluster, o.interrupt = false, ""
	return o == noOptions
}
