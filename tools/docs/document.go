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
}

// The first words of directives, which are comments.
const (
	wordRun    = "run"
	wordPrints = "prints"
	wordHidden = "hidden"
)

// comment is a comment of the document.
type comment struct {
	line int
	word string // the first word
	rest string
}

// reader turns the parts of a document into steps.
type reader struct {
	steps   []step
	pending comment // a comment whose block has not come yet
	errs    []error
}

// parseDocument returns the steps of a document, and an error that lists all of its
// mistakes.
func parseDocument(source []byte) ([]step, error) {
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
			r.fence(line, string(node.Language(source)), string(node.Lines().Value(source)))
		case *ast.CodeBlock:
			r.dropPending()
			r.fail(line, errors.New("an indented code block: use a fence with a language such as sh, text or yaml"))
		case *ast.HTMLBlock:
			html := string(node.Lines().Value(source))
			if node.HasClosure() {
				html += string(node.ClosureLine.Value(source))
			}
			r.dropPending()
			if inside, ok := strings.CutPrefix(strings.TrimSpace(html), "<!--"); ok {
				inside, _, _ = strings.Cut(inside, "-->")
				r.comment(line, inside)
			}
		default:
			r.dropPending()
		}
		return ast.WalkSkipChildren, nil
	})
	r.dropPending()
	return r.steps, errors.Join(r.errs...)
}

func (r *reader) fail(line int, err error) {
	r.errs = append(r.errs, fmt.Errorf("line %d: %w", line, err))
}

// dropPending drops a comment that no block follows. This is a mistake for a directive, but not for
// other comments.
func (r *reader) dropPending() {
	if _, isDirective := follows[r.pending.word]; isDirective {
		r.fail(r.pending.line, fmt.Errorf("no block follows the comment <!-- %s -->", r.pending.word))
	}
	r.pending = comment{}
}

// comment adds the step of a directive that needs no block, and keeps other comments for
// the block that follows.
func (r *reader) comment(line int, inside string) {
	trimmed := strings.TrimSpace(inside)
	end := strings.IndexFunc(trimmed+" ", func(r rune) bool { return r < 'a' || r > 'z' })
	word, rest := trimmed[:end], strings.TrimPrefix(trimmed[end:], ":")
	switch word {
	case wordHidden:
		before, _, _ := strings.Cut(inside, word)
		first := line + strings.Count(before, "\n")
		r.steps = append(r.steps, step{options: noOptions, line: line, first: first + 1, text: strings.TrimPrefix(rest, "\n")})
		return
	case wordRun:
		if o, err := parseOptions(wordRun, rest); err == nil && o.needNoBlock() {
			r.steps = append(r.steps, step{options: o, line: line})
			return
		}
	}
	r.pending = comment{line, word, rest}
}

// fence adds the steps of a fenced block and the comment before it.
func (r *reader) fence(line int, language, text string) {
	c := r.pending
	r.pending = comment{}
	s, err := newStep(c, language)
	if err != nil {
		r.fail(cmp.Or(c.line, line), err)
		return
	}
	s.line, s.first, s.text = line, line+1, text
	switch {
	case language == "console":
		steps, err := s.dialog()
		if err != nil {
			r.fail(line, err)
		}
		r.steps = append(r.steps, steps...)
	case language == "sh" || c.word != "":
		r.steps = append(r.steps, s)
	}
}

// follows lists the languages of the blocks that may follow a directive.
var follows = map[string][]string{wordRun: {"sh", "console"}, wordPrints: {"text", ""}}

// newStep returns the step of a block in a language after a comment, which may be empty.
func newStep(c comment, language string) (step, error) {
	s, err := step{options: noOptions}, error(nil)
	languages, isDirective := follows[c.word]
	switch {
	case !isDirective && c != comment{}:
		return s, fmt.Errorf("a comment before a block must start with run or prints, not with %q", c.word)
	case !isDirective && slices.Contains([]string{"", "bash", "shell", "shell-session"}, language):
		return s, fmt.Errorf("a block of %q: use sh for commands, console for commands with output, and text for anything else", language)
	case isDirective && !slices.Contains(languages, language):
		return s, fmt.Errorf("a block of %q must not follow the comment <!-- %s -->", language, c.word)
	}
	if isDirective {
		s.prints = c.word == wordPrints
		s.options, err = parseOptions(c.word, c.rest)
	}
	return s, err
}

// dialog splits a console block into steps: lines after $ are commands, and the lines
// below them their output. Only the last command may fail.
func (s *step) dialog() ([]step, error) {
	var steps []step
	command := -1 // the index of the last
	for i, line := range strings.Split(strings.TrimSuffix(s.text, "\n"), "\n") {
		next := *s
		next.line, next.first = s.first+i, s.first+i
		next.fails = false
		if len(steps) > 0 {
			next.interrupt, next.cluster = "", false
		}
		text, isCommand := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		last := len(steps) - 1
		switch {
		case isCommand:
			next.prints, next.text = false, text+"\n"
			command = len(steps)
			steps = append(steps, next)
		case len(steps) == 0:
			return nil, errors.New("a console block must start with a command: $ COMMAND")
		case goesOn && last == command:
			steps[last].text += more + "\n"
		case last == command:
			next.prints, next.text = true, line+"\n"
			steps = append(steps, next)
		default:
			steps[last].text += line + "\n"
		}
	}
	steps[command].fails = s.fails
	return steps, nil
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

// parseOptions reads the options of a comment that begins with run or prints.
func parseOptions(directive, text string) (options, error) {
	o := noOptions
	set := flag.NewFlagSet(directive, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	if directive == wordRun {
		set.Func("skip", "", func(reason string) error {
			if o.skip = reason; reason == "" {
				return errors.New("the reason is missing: skip=\"reason\"")
			}
			return nil
		})
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

// needNoBlock reports whether the only options are cluster and interrupt, which may stand in a
// comment without a block.
func (o options) needNoBlock() bool {
	o.cluster, o.interrupt = false, ""
	return o == noOptions
}
