// SPDX-License-Identifier: Apache-2.0

// Parsing of a document, as Markdown, into steps.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// stepKind is the kind of a step.
type stepKind int

const (
	stepRun    stepKind = iota // run text
	stepExpect                 // compare text with what a block printed
	stepFile                   // write text to path
	stepPatch                  // apply text
	stepBefore                 // only do what run.before says
)

// step is one thing that a document says to do.
type step struct {
	kind   stepKind
	line   int // the step's line in the document
	first  int // the line where text begins
	text   string
	run    runOptions
	prints printOptions
	path   string
	hidden bool // readers do not see the block
}

// reader turns pieces into steps.
type reader struct {
	steps   []step
	pending []piece // comments whose block has not come yet
	errs    []error
}

// parseDocument returns the steps of a document, and an error that lists all of its
// mistakes.
func parseDocument(source []byte) ([]step, error) {
	var r reader
	for _, p := range pieces(source) {
		switch p.kind {
		case pieceComment:
			r.comment(p)
		case pieceFence:
			r.fence(p)
		case pieceIndented:
			r.dropPending()
			r.fail(p.line, errors.New("an indented code block: use a fence with a language such as sh, text or yaml"))
		default:
			r.dropPending()
		}
	}
	r.dropPending()
	return r.steps, errors.Join(r.errs...)
}

func (r *reader) fail(line int, err error) {
	r.errs = append(r.errs, fmt.Errorf("line %d: %w", line, err))
}

// dropPending drops the comments that no block follows. Directives among them are
// mistakes; other comments are not.
func (r *reader) dropPending() {
	for _, p := range r.pending {
		if word, _ := splitComment(p.text); isOurs(word) {
			r.fail(p.line, fmt.Errorf("no block follows the comment <!-- %s -->", word))
		}
	}
	r.pending = nil
}

func isOurs(word string) bool {
	return slices.Contains([]string{wordRun, wordPrints, wordFile, wordPatch}, word)
}

// comment adds the step of a directive that needs no block, and keeps other comments for
// the block that follows.
func (r *reader) comment(p piece) {
	word, rest := splitComment(p.text)
	switch word {
	case wordHidden:
		r.dropPending()
		before, _, _ := strings.Cut(p.text, word)
		first := p.line + strings.Count(before, "\n")
		rest = strings.TrimPrefix(rest, "\n")
		r.steps = append(r.steps, step{kind: stepRun, line: p.line, first: first + 1, text: rest, hidden: true, run: newRun()})
		return
	case wordRun:
		// A comment with only cluster or interrupt needs no block.
		s := step{kind: stepBefore, line: p.line, text: rest, run: newRun()}
		options, err := parseOptions(rest)
		if err != nil || !slices.ContainsFunc(options, func(o option) bool { return o.key != "cluster" && o.key != "interrupt" }) {
			if err == nil {
				err = s.apply(options)
			}
			if err != nil {
				r.fail(p.line, err)
			}
			r.steps = append(r.steps, s)
			return
		}
	}
	r.pending = append(r.pending, p)
}

func newRun() runOptions { return runOptions{terminal: "1", timeout: defaultTimeout} }

// apply applies the options of a run comment.
func (s *step) apply(options []option) error {
	var errs []error
	for _, o := range options {
		if err := applyRun(o, &s.run, &s.prints); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.key, err))
		}
	}
	return errors.Join(append(errs, s.run.check())...)
}

// fence adds the steps of a fenced block and the comments before it.
func (r *reader) fence(p piece) {
	s := step{line: p.line, first: p.line + 1, text: p.text, run: newRun()}
	comments := map[string]bool{}
	for _, c := range r.pending {
		word, rest := splitComment(c.text)
		comments[word] = true
		if err := s.comment(word, rest); err != nil {
			r.fail(c.line, err)
		}
	}
	r.pending = nil
	language, _, _ := strings.Cut(p.info, " ")
	if err := suits(language, comments); err != nil {
		r.fail(p.line, err)
		return
	}
	r.place(s, language, comments)
}

// comment reads one of the comments before a block.
func (s *step) comment(word, rest string) error {
	switch word {
	case wordRun:
		options, err := parseOptions(rest)
		if err != nil {
			return err
		}
		return s.apply(options)
	case wordPrints:
		options, err := parseOptions(rest)
		for _, o := range options {
			err = errors.Join(err, applyPrints(o, &s.prints))
		}
		return err
	case wordFile:
		if s.path = strings.TrimSpace(rest); s.path == "" {
			return errors.New("say which file: <!-- file: path -->")
		}
	case wordPatch:
	default:
		return fmt.Errorf("a comment before a block must start with run, prints, file or patch, not with %q", word)
	}
	return nil
}

// suits returns an error if these comments are not allowed for a block of this language.
func suits(language string, comments map[string]bool) error {
	switch {
	case len(comments) > 1:
		return errors.New("a block has only one of run, prints, file and patch")
	case comments[wordRun] && language != "sh" && language != "console":
		return fmt.Errorf("only sh and console blocks can be run, not %q", language)
	case comments[wordPrints] && language != "text" && language != "":
		return fmt.Errorf("output must be in a text block, not %q", language)
	case comments[wordPatch] && language != "diff":
		return fmt.Errorf("a patch must be in a diff block, not %q", language)
	case len(comments) == 0 && slices.Contains([]string{"", "bash", "shell", "shell-session"}, language):
		return fmt.Errorf("a block of %q: say sh if it is commands, console if it has their output, text if it is neither", language)
	case comments[wordFile] && (language == "sh" || language == "console"):
		return errors.New("commands are run, not written to a file")
	}
	return nil
}

// place adds the steps of a block.
func (r *reader) place(s step, language string, comments map[string]bool) {
	switch {
	case language == "sh":
		s.kind = stepRun
		r.steps = append(r.steps, s)
	case language == "console":
		steps, err := s.dialogue()
		if err != nil {
			r.fail(s.line, err)
		}
		r.steps = append(r.steps, steps...)
	case comments[wordPrints]:
		s.kind = stepExpect
		r.steps = append(r.steps, s)
	case comments[wordFile]:
		s.kind = stepFile
		r.steps = append(r.steps, s)
	case comments[wordPatch]:
		s.kind = stepPatch
		r.steps = append(r.steps, s)
	}
}

// dialogue splits a console block into steps: lines after $ are commands, and the lines
// below them their output.
func (s *step) dialogue() ([]step, error) {
	var steps []step
	for i, line := range strings.Split(strings.TrimSuffix(s.text, "\n"), "\n") {
		next := *s
		next.first = s.first + i
		next.line = next.first
		next.run.fails = false
		if len(steps) > 0 {
			next.run.before = beforeOptions{}
		}
		command, isCommand := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		last := len(steps) - 1
		switch {
		case isCommand:
			next.kind, next.text = stepRun, command+"\n"
			steps = append(steps, next)
		case len(steps) == 0:
			return nil, errors.New("a console block must start with a command: $ COMMAND")
		case goesOn && steps[last].kind == stepRun:
			steps[last].text += more + "\n"
		case steps[last].kind == stepRun:
			next.kind, next.text = stepExpect, line+"\n"
			steps = append(steps, next)
		default:
			steps[last].text += line + "\n"
		}
	}
	// fails applies to the last command.
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].kind == stepRun {
			steps[i].run.fails = s.run.fails
			break
		}
	}
	return steps, nil
}

// titleLength is the number of characters of a command in its title.
const titleLength = 90

// title describes a step in one line.
func (s step) title() string {
	lines := strings.Split(strings.TrimSpace(s.text), "\n")
	first := lines[0]
	if runes := []rune(first); len(runes) > titleLength {
		first = string(runes[:titleLength]) + "..."
	} else if len(lines) > 1 {
		first += " ..."
	}
	switch s.kind {
	case stepExpect:
		return "prints " + squeeze(first)
	case stepFile:
		return "file " + s.path
	case stepPatch:
		return "patch"
	default:
		return first
	}
}

// pieceKind is the kind of a piece.
type pieceKind int

const (
	pieceOther    pieceKind = iota // prose
	pieceComment                   // <!-- text -->
	pieceFence                     // a fenced block of code
	pieceIndented                  // an indented block of code
)

// piece is a part of a document.
type piece struct {
	kind pieceKind
	line int    // its first line in the document, from 1
	info string // the text after the fence, such as "sh"
	text string // the code, or the content of the comment
}

// pieces returns the parts of a document in their order.
func pieces(source []byte) []piece {
	var found []piece
	add := func(node ast.Node, kind pieceKind, info, content string) {
		line := 1 + bytes.Count(source[:max(node.Pos(), 0)], []byte("\n"))
		found = append(found, piece{kind: kind, line: line, info: info, text: content})
	}
	root := goldmark.DefaultParser().Parse(text.NewReader(source))
	// The walk returns only errors of the function, which has none.
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || node.Type() == ast.TypeDocument {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.FencedCodeBlock:
			info := ""
			if node.Info != nil {
				info = strings.TrimSpace(string(node.Info.Value(source)))
			}
			add(node, pieceFence, info, content(node, source))
		case *ast.CodeBlock:
			add(node, pieceIndented, "", content(node, source))
		case *ast.HTMLBlock:
			html := content(node, source)
			if node.HasClosure() {
				html += string(node.ClosureLine.Value(source))
			}
			html = strings.TrimSpace(html)
			if inside, ok := strings.CutPrefix(html, "<!--"); ok {
				inside, _, _ = strings.Cut(inside, "-->")
				add(node, pieceComment, "", inside)
			} else {
				add(node, pieceOther, "", "")
			}
		case *ast.List, *ast.ListItem, *ast.Blockquote:
			return ast.WalkContinue, nil // descend into them
		default:
			add(node, pieceOther, "", "")
		}
		return ast.WalkSkipChildren, nil
	})
	return found
}

// content returns a block's lines.
func content(node ast.Node, source []byte) string {
	var all strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		all.Write(line.Value(source))
	}
	return all.String()
}
