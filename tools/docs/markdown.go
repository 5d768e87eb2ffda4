// SPDX-License-Identifier: Apache-2.0

// The pieces of a Markdown document.

package main

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

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
