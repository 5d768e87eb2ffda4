// SPDX-License-Identifier: Apache-2.0

// What the files of a project say of an added kind.

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// replace replaces a declaration of a Go file: Type.Method, or Type.Field. An empty
// text removes it.
func replace(source, name, by string) (string, error) {
	of, member, _ := strings.Cut(name, ".")
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.ParseComments)
	if err != nil {
		return "", err
	}
	for _, declaration := range file.Decls {
		found, doc := memberOf(declaration, of, member)
		if found == nil {
			continue
		}
		begin, end := set.Position(doc.Pos()).Offset, set.Position(found.End()).Offset
		return source[:begin] + strings.TrimRight(by, "\n") + source[end:], nil
	}
	return "", fmt.Errorf("this project has no %s, which newproject replaces", name)
}

// memberOf returns the method of a type, or the field of a struct, with its comment, or nil
// if the declaration is not of that.
func memberOf(declaration ast.Decl, of, member string) (found, doc ast.Node) {
	if method, ok := declaration.(*ast.FuncDecl); ok && method.Name.Name == member && receiver(method) == of {
		return method, method.Doc
	}
	ast.Inspect(declaration, func(node ast.Node) bool {
		if spec, ok := node.(*ast.TypeSpec); ok {
			return spec.Name.Name == of
		}
		if field, ok := node.(*ast.Field); ok && len(field.Names) == 1 && field.Names[0].Name == member {
			found, doc = field, field.Doc
		}
		_, isFunc := node.(*ast.FuncDecl)
		return !isFunc
	})
	return found, doc
}

var (
	listOfOwners      = regexp.MustCompile(`var Owners = \[\]\*OwnerRow\{[^}]*`)
	listOfControllers = regexp.MustCompile(`\treturn \[\]controller\{[^}]*`)
)

// editFiles adds the kind to files of the project.
func (w *kindWriter) editFiles() error {
	if err := w.edit("main.go", w.editMain); err != nil {
		return err
	}
	if err := w.edit(w.first.text("test/footest/owners.go"), func(text string) (string, error) {
		at := listOfOwners.FindStringIndex(text)
		if at == nil {
			return "", errors.New("there is no list of owners")
		}
		return text[:at[1]] + ", " + w.Kind + "Owner" + text[at[1]:], nil
	}); err != nil {
		return err
	}
	folder := fmt.Sprintf("%-23s", "internal/"+w.singular()+"/") + "the controller of " + w.Kinds + ", which works as that of " + w.first.Kinds + ", with a plan of its own\n"
	if err := w.edit("docs/layout.md", insertBefore("\npkg/apis/ ", folder)); err != nil {
		return err
	}
	rules, err := w.fill("rules.yaml.txt")
	if err != nil {
		return err
	}
	if err := w.edit("artifacts/deploy/permissions/controller.yaml", insertBefore("# patch: a repeated Event", w.text(rules))); err != nil {
		return err
	}
	rows, err := w.fill("manual.md.txt")
	if err != nil {
		return err
	}
	if err := w.edit("docs/operations.md", insertBefore("| `create`, `patch` | `events` |", w.text(rows))); err != nil {
		return err
	}
	return w.edit("artifacts/deploy/permissions/users.yaml", func(text string) (string, error) {
		for verbs, resources := range map[string]string{"[get]": "foos, foos/status", "[list, watch]": "foos", "[create, update, patch, delete, deletecollection]": "foos"} {
			rule := fmt.Sprintf("- apiGroups: [%s]\n  resources: [%s]\n  verbs: %s\n", w.Group, w.text(resources), verbs)
			var err error
			if text, err = insertAfter("  verbs: "+verbs+"\n", rule)(text); err != nil {
				return "", err
			}
		}
		return text, nil
	})
}

// editMain starts the controller of the kind.
func (w *kindWriter) editMain(text string) (string, error) {
	start, err := w.fill("main.go.txt")
	if err != nil {
		return "", err
	}
	at := listOfControllers.FindStringIndex(text)
	if at == nil {
		return "", fmt.Errorf("main.go has no list of controllers")
	}
	text = text[:at[0]] + w.spellGo(start) + text[at[0]:at[1]] + ", " + camel(w.Kinds) + text[at[1]:]
	const imports = "/internal/events\"\n"
	text = strings.Replace(text, imports, imports+"\t\""+w.Module+"/internal/"+w.singular()+"\"\n", 1)
	formatted, err := format.Source([]byte(text))
	return string(formatted), err
}

// edit changes a file of the project.
func (w *kindWriter) edit(name string, change func(text string) (string, error)) error {
	for i, file := range w.project.files {
		if file.path == name {
			text, err := change(string(file.data))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			w.project.files[i].data = []byte(text)
			return nil
		}
	}
	return fmt.Errorf("the project has no %s", name)
}

// insertBefore returns a change that inserts lines above the first one that begins with a
// text.
func insertBefore(line, text string) func(string) (string, error) {
	return func(in string) (string, error) {
		at := strings.Index(in, "\n"+line)
		if at < 0 {
			return "", fmt.Errorf("no line begins with %q", line)
		}
		return in[:at+1] + text + in[at+1:], nil
	}
}

// insertAfter returns a change that inserts lines below the first one that is this.
func insertAfter(line, text string) func(string) (string, error) {
	return func(in string) (string, error) {
		at := strings.Index(in, line)
		if at < 0 {
			return "", fmt.Errorf("no line is %q", line)
		}
		return in[:at+len(line)] + text + in[at+len(line):], nil
	}
}
