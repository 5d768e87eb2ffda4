// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Operator is a kind of mistake, and the names that are mentioned where it is made.
type Operator struct {
	isPlace func(node, parent ast.Node) bool // nil for Text
	becomes string
	names   []string
}

// Without drops a statement, or an element of a literal.
func Without(names ...string) Operator { return Operator{isPart, "", names} }

// Never makes a condition false.
func Never(names ...string) Operator { return Operator{isCondition, "(false && ($))", names} }

// Always makes a condition true.
func Always(names ...string) Operator { return Operator{isCondition, "(true || ($))", names} }

// Value puts an expression in the place of another, for which $ stands.
func Value(by string, names ...string) Operator { return Operator{isValue, by, names} }

// Statement puts statements in the place of one, for which $ stands.
func Statement(by string, names ...string) Operator { return Operator{isPart, by, names} }

// Text puts a text in the place of another, in a file that is not in Go.
func Text(from, to string) Operator { return Operator{nil, to, []string{from}} }

// place is a part of a file, between the texts before and after it.
type place struct {
	file, before, text, after string
	node                      ast.Node // nil if the text is not in Go
}

// replace returns the text of a place's file, with the mistake. A statement without use remains, so
// that what it mentions counts as used.
func (o Operator) replace(p *place) ([]byte, error) {
	after, becomes := p.after, o.becomes
	switch _, isStatement := p.node.(ast.Stmt); {
	case p.node == nil:
		return []byte(p.before + becomes + after), nil
	case isStatement && !strings.Contains(becomes, "$"):
		becomes = "if false {\n$\n}\n" + becomes
	case becomes == "" && strings.HasPrefix(after, ","):
		after = after[1:]
	}
	return format.Source([]byte(p.before + strings.ReplaceAll(becomes, "$", p.text) + after))
}

// isPart reports whether a node is a statement or a case of a list, or an element of a literal.
func isPart(node, parent ast.Node) bool {
	_, isStatement := node.(ast.Stmt)
	switch parent := parent.(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return isStatement
	case *ast.CompositeLit:
		return node != parent.Type
	}
	return false
}

// isCondition reports whether a node is the condition of an if, for or case, an operand of && or ||,
// a comparison or a negation.
func isCondition(node, parent ast.Node) bool {
	switch node := node.(type) {
	case *ast.UnaryExpr:
		return node.Op == token.NOT
	case *ast.BinaryExpr:
		return node.Op.Precedence() <= token.EQL.Precedence() // a comparison, && or ||
	case ast.Expr:
		switch parent := parent.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause:
			return true
		case *ast.BinaryExpr:
			return parent.Op == token.LAND || parent.Op == token.LOR
		}
	}
	return false
}

// isValue reports whether a node is an expression, and neither a part of a name nor what is called.
func isValue(node, parent ast.Node) bool {
	switch parent := parent.(type) {
	case *ast.SelectorExpr:
		return node == parent.X
	case *ast.CallExpr:
		return node != parent.Fun
	case *ast.KeyValueExpr:
		return node == parent.Value
	}
	_, isField := node.(*ast.KeyValueExpr)
	_, isExpr := node.(ast.Expr)
	return isExpr && !isField
}

// find returns the place of an operator in what Mutant.In names.
func (o Operator) find(root fs.FS, in string) (*place, error) {
	if o.isPlace == nil {
		return findText(root, in, o.names[0])
	}
	names := strings.Fields(in)
	p, err := findDeclaration(root, names[0])
	if err == nil && len(names) > 1 {
		p, err = p.smallest(isPart, names[1:])
	}
	if err == nil {
		p, err = p.smallest(o.isPlace, o.names)
	}
	return p, err
}

// smallest returns the smallest part that is of a kind and mentions all names, if there is one.
func (p *place) smallest(isPlace func(node, parent ast.Node) bool, names []string) (*place, error) {
	var found []ast.Node
	textOf := func(node ast.Node) (before, text, after string) {
		start, end := node.Pos()-p.node.Pos(), node.End()-p.node.Pos()
		return p.text[:start], p.text[start:end], p.text[end:]
	}
	ast.PreorderStack(p.node, nil, func(node ast.Node, around []ast.Node) bool {
		_, text, _ := textOf(node)
		if mentioned := tokensOf(text); slices.ContainsFunc(names, func(name string) bool { return !mentioned[name] }) {
			return false
		}
		if len(around) > 0 && isPlace(node, around[len(around)-1]) {
			found = slices.DeleteFunc(found, func(other ast.Node) bool { return slices.Contains(around, other) })
			found = append(found, node)
		}
		return true
	})
	if len(found) != 1 {
		return nil, fmt.Errorf("%d places, not one, mention %q", len(found), names)
	}
	before, text, after := textOf(found[0])
	return &place{p.file, p.before + before, text, after + p.after, found[0]}, nil
}

// tokensOf returns the names, literals, operators and keywords in a text.
func tokensOf(text string) map[string]bool {
	var tokens scanner.Scanner
	tokens.Init(token.NewFileSet().AddFile("", -1, len(text)), []byte(text), nil, 0)
	found := map[string]bool{}
	for {
		_, kind, literal := tokens.Scan()
		if kind == token.EOF {
			return found
		}
		found[literal], found[kind.String()] = true, true
	}
}

// findText returns the only place of a text in a file.
func findText(root fs.FS, file, text string) (*place, error) {
	content, err := fs.ReadFile(root, file)
	if _, noFolder := fs.Stat(root, path.Dir(file)); errors.Is(noFolder, fs.ErrNotExist) {
		err = ErrAbsent
	}
	if n := strings.Count(string(content), text); err == nil && n != 1 {
		err = fmt.Errorf("it has this text %d times, not once:\n%s", n, text)
	}
	before, after, _ := strings.Cut(string(content), text)
	return &place{file, before, text, after, nil}, err
}

// findDeclaration returns where a package declares something, such as plan.ChildKind.Decide.
func findDeclaration(root fs.FS, in string) (*place, error) {
	texts, err := sources(root)
	if err != nil {
		return nil, err
	}
	found, isAbsent := []*place{}, true
	pkg, name, _ := strings.Cut(in, ".")
	for path, text := range texts {
		isOfPackage := strings.Contains(text, "\npackage "+pkg+"\n")
		isAbsent = isAbsent && !isOfPackage
		if !strings.Contains(text, name[strings.Index(name, ".")+1:]) {
			continue // parsing takes time
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for node := range ast.Preorder(file) {
			if declares(node, name) {
				isAbsent = false // a package that has another name is not absent
				if isOfPackage {
					start, end := node.Pos()-file.FileStart, node.End()-file.FileStart
					found = append(found, &place{path, text[:start], text[start:end], text[end:], node})
				}
			}
		}
	}
	if isAbsent {
		return nil, ErrAbsent
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("it is declared %d times, not once", len(found))
	}
	return found[0], nil
}

// noProduct are folders without code that the program links and somebody wrote.
var noProduct = []string{"bin", "conform", "devcluster", "docs", "examples", "generated", "hack", "test", "testdata", "tools"}

// sources returns the texts of the product's Go files.
func sources(root fs.FS) (map[string]string, error) {
	texts := map[string]string{}
	return texts, fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || path == ".":
			return err
		case entry.IsDir() && (slices.Contains(noProduct, entry.Name()) || strings.ContainsAny(entry.Name()[:1], "._")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		texts[path] = string(text)
		return err
	})
}

// declares reports whether a node declares a name.
func declares(node ast.Node, name string) bool {
	switch node := node.(type) {
	case *ast.FuncDecl:
		declared := node.Name.Name
		if node.Recv != nil {
			receiver, _, _ := strings.Cut(types.ExprString(node.Recv.List[0].Type), "[") // without type parameters
			declared = strings.TrimPrefix(receiver, "*") + "." + declared
		}
		return declared == name
	case *ast.ValueSpec:
		return node.Names[0].Name == name
	}
	return false
}
