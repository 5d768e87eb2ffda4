// SPDX-License-Identifier: Apache-2.0

// Package docs runs the command blocks of documents, and compares their output with the documents.
// make docs-test runs it; README.md explains how to mark a document. docs/claims tests other
// statements in the documents (names of tests and files, the requirements of go.mod).
//
// This file turns a document into steps, and directives into options of steps.
package docs

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// step is one step in a document: commands to run or, if prints is true, the output to compare with that of a block.
type step struct {
	options
	prints bool
	line   int    // the step's line in the document
	first  int    // the line where text begins
	text   string // if there are no commands, the step only applies the options cluster and interrupt
	job    *job   // the block, once it was started
}

// comment is a comment of the document. The comments that are directives begin with the words run, prints or hidden.
type comment struct {
	line int
	word string // the first word
	rest string
}

// follows lists the languages of the blocks that may follow a directive.
var follows = map[string][]string{"run": {"sh", "console"}, "prints": {"text", ""}}

// reader turns the parts of a document into steps.
type reader struct {
	steps   []*step
	pending comment // a comment whose block has not come yet
	errs    []error
}

// parseDocument returns the steps of a document, and an error that lists all of its
// mistakes.
func parseDocument(source []byte) ([]*step, error) {
	var r reader
	root := goldmark.DefaultParser().Parse(text.NewReader(source))
	// The walk returns only errors of the function, which has none.
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		line := 1 + bytes.Count(source[:max(node.Pos(), 0)], []byte("\n"))
		switch node := node.(type) {
		case *ast.Document, *ast.List, *ast.ListItem, *ast.Blockquote:
			return ast.WalkContinue, nil // descend into them
		case *ast.FencedCodeBlock:
			r.block(line, string(node.Language(source)), string(node.Lines().Value(source)))
			return ast.WalkSkipChildren, nil
		}
		r.dropPending()
		switch node := node.(type) {
		case *ast.CodeBlock:
			r.fail(line, errors.New("an indented code block: use a fence with a language such as sh, text or yaml"))
		case *ast.HTMLBlock:
			html := string(node.Lines().Value(source))
			if node.HasClosure() {
				html += string(node.ClosureLine.Value(source))
			}
			if inside, ok := strings.CutPrefix(strings.TrimSpace(html), "<!--"); ok {
				inside, _, _ = strings.Cut(inside, "-->")
				r.comment(line, inside)
			}
		}
		return ast.WalkSkipChildren, nil
	})
	r.dropPending()
	return r.steps, errors.Join(r.errs...)
}

func (r *reader) fail(line int, err error) {
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("line %d: %w", line, err))
	}
}

// dropPending drops a comment that no block follows. This is a mistake for a directive, but not for
// other comments.
func (r *reader) dropPending() {
	if follows[r.pending.word] != nil {
		r.fail(r.pending.line, fmt.Errorf("no block follows the comment <!-- %s -->", r.pending.word))
	}
	r.pending = comment{}
}

// comment adds the step of a directive that needs no block, and keeps other comments for
// the block that follows.
func (r *reader) comment(line int, inside string) {
	trimmed := strings.TrimSpace(inside)
	end := strings.IndexFunc(trimmed+" ", func(r rune) bool { return r < 'a' || r > 'z' })
	c := comment{line, trimmed[:end], strings.TrimPrefix(trimmed[end:], ":")}
	o, err := parseOptions(c)
	switch {
	case c.word == "hidden":
		r.steps = append(r.steps, &step{options: noOptions, line: line, first: line + 1, text: strings.TrimPrefix(c.rest, "\n")})
	case c.word == "run" && err == nil && o.needNoBlock():
		r.steps = append(r.steps, &step{options: o, line: line})
	default:
		r.pending = c
	}
}

// block adds the steps of a block and of the comment before it.
func (r *reader) block(line int, language, text string) {
	c := r.pending
	r.pending = comment{}
	o, err := parseOptions(c)
	languages := follows[c.word]
	switch {
	case languages == nil && c.word != "":
		err = fmt.Errorf("a comment before a block must start with run or prints, not with %q", c.word)
	case languages == nil && slices.Contains([]string{"", "bash", "shell", "shell-session"}, language):
		err = fmt.Errorf("a block of %q: use sh for commands, console for commands with output, and text for anything else", language)
	case languages != nil && !slices.Contains(languages, language):
		err = fmt.Errorf("a block of %q must not follow the comment <!-- %s -->", language, c.word)
	case language == "console" && !strings.HasPrefix(text, "$ "):
		err = errors.New("a console block must start with a command: $ COMMAND")
	}
	s := step{options: o, prints: c.word == "prints", line: line, first: line + 1, text: text}
	switch {
	case err != nil:
		r.fail(cmp.Or(c.line, line), err)
	case language == "console":
		r.steps = append(r.steps, s.dialog()...)
	case language == "sh" || s.prints:
		r.steps = append(r.steps, &s)
	}
}

// dialog splits a console block into steps: lines after $ are commands, and the lines
// below them their output. Only the last command may fail.
func (s step) dialog() (steps []*step) {
	next := s
	next.fails = false
	var last *step
	var command *step // the last one
	for i, line := range strings.Split(strings.TrimSuffix(s.text, "\n"), "\n") {
		text, isCommand := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		if goesOn && last == command {
			last.text += more + "\n"
			continue
		}
		if isCommand || last == command {
			added := next
			added.prints, added.line, added.first, added.text = !isCommand, s.first+i, s.first+i, ""
			last = &added
			steps = append(steps, last)
			next.interrupt, next.cluster = "", false // only before the first
		}
		if isCommand {
			command = last
		}
		last.text += text + "\n"
	}
	command.fails = s.fails
	return steps
}

// options are the options of a command block, and of the block with its output.
type options struct {
	skip       string // why it is not run
	fails      bool
	timeout    time.Duration
	background bool
	until      string // the text in the output of a background block that shows that it is up
	cluster    bool
	interrupt  string // id of a background block, or lastBlock
	id         string

	of        string // id of the block that prints it, if it is not the last one
	unordered bool
	within    time.Duration
}

// noOptions are the options of a block without a comment.
var noOptions = options{timeout: 2 * time.Minute}

// lastBlock is the value of the option interrupt if the document gives none.
const lastBlock = "true"

// word matches KEY, KEY=VALUE or KEY="VALUE WITH SPACES".
var word = regexp.MustCompile(`(?:[^\s"]|"[^"]*")+`)

// parseOptions reads the options in a directive. Other comments have none.
func parseOptions(c comment) (options, error) {
	o := noOptions
	if follows[c.word] == nil {
		return o, nil
	}
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	if c.word == "run" {
		set.StringVar(&o.skip, "skip", o.skip, "")
		set.BoolVar(&o.fails, "fails", o.fails, "")
		set.DurationVar(&o.timeout, "timeout", o.timeout, "")
		set.BoolVar(&o.background, "background", o.background, "")
		set.StringVar(&o.until, "until", o.until, "")
		set.BoolVar(&o.cluster, "cluster", o.cluster, "")
		set.BoolFunc("interrupt", "", func(id string) error { o.interrupt = id; return nil })
		set.StringVar(&o.id, "id", o.id, "")
	}
	set.StringVar(&o.of, "of", o.of, "")
	set.BoolVar(&o.unordered, "unordered", o.unordered, "")
	set.DurationVar(&o.within, "within", o.within, "")
	for _, option := range word.FindAllString(c.rest, -1) {
		// One at a time, because otherwise an option without a value would take the next one.
		if err := set.Parse([]string{"-" + strings.ReplaceAll(option, `"`, "")}); err != nil {
			return o, err
		}
	}
	if !o.background && o.until != "" || o.background && o.fails {
		return o, errors.New("until= is for a block in the background, and fails for one that is not")
	}
	return o, nil
}

// needNoBlock reports whether the only options are cluster and interrupt, which may stand in a
// comment without a block.
func (o options) needNoBlock() bool {
	o.cluster, o.interrupt = false, ""
	return o == noOptions
}
