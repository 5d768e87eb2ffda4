// SPDX-License-Identifier: Apache-2.0

// Errors of generators, in terms of the sources.

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// remedies tells what helps against errors whose text does not.
var remedies = []struct{ cause, remedy string }{
	{`/pkg/generated/applyconfiguration/(\S+?)[:;]`, "client-gen has no method that applies a type of another module ($1): remove its // +genclient:method=...,verb=apply, and use verb=update"},
	{`no required module provides package (\S+);|cannot find module providing package (\S+?)[:;]`, "run go get $1$2, if the package exists"},
	{`unsupported type \*types\.(Map|Slice|Pointer)\b.* for identifier (\w+)`, "markers on an alias have no effect: write type $2 without the ="},
	{`unsupported AST kind \*ast\.Index(List)?Expr`, "no generator knows generic types: write the type out"},
	{`Hit an unsupported type '([^']*)' for '[^']*'(?:, from (\S+))?`, "API types can't contain $1 ($2): if it is part of no kind, add // +k8s:deepcopy-gen=false above the type, or move the type out of pkg/apis"},
	{`encountered struct field "\w+" without JSON tag in type "(\w+)"`, "a field has the type $1, which is no API type, or contains it: use metav1.Time for a time, and a struct with JSON tags for others"},
	{`conflicting types in allOf branches`, "a field has a type that writes itself as another type of JSON, such as net.IP or json.RawMessage: use a string, or runtime.RawExtension"},
	{`interface type is not supported`, "a field has an interface: use runtime.RawExtension for an object of any kind"},
	{`allowDangerousTypes`, "use resource.Quantity, an integer or a string. If you need the float, add ,allowDangerousTypes=true behind generateEmbeddedObjectMeta=true in hack/codegen.sh"},
	{`has no field or method DeepCopy(Into)?\b`, "types outside pkg/apis need DeepCopy methods of their own: move them below pkg/apis, where they are generated"},
	{`has no field or method OpenAPIModelName`, "only packages below pkg/apis get that method: move the type there, or remove // +k8s:openapi-model-package from its package"},
	{`maps? with non-string keys`, "a map in an API type must have strings as keys, for JSON has no others"},
	{`items(\.type|: Required|\.x-kubernetes)?.*Required value`, "a type that contains itself has no finite schema: add // +kubebuilder:pruning:PreserveUnknownFields and // +kubebuilder:validation:Schemaless to one of the fields"},
	{`estimated rule cost|rule cost total|exceeds budget`, "bounds (MaxLength, MaxItems, MaxProperties) on the fields that it reads make a rule cheaper"},
	{`oldSelf cannot be used on the uncorrelatable portion`, "the items of a list have no old values: make the list a map (+listType=map, +listMapKey=...), or move the rule out of it. If the type is not yours, hide its schema with // +kubebuilder:validation:Schemaless and // +kubebuilder:pruning:PreserveUnknownFields"},
	{`cannot use &?value \(.* of type|cannot use \*?values\[i\]`, "applyconfiguration-gen can't write this field: write the fields of a struct of another module out instead of embedding it with json:\",inline\", and []T instead of a list of pointers"},
	{`in argument to SchemeBuilder\.Register`, "delete the call of SchemeBuilder.Register: zz_generated.register.go registers all kinds"},
}

// help returns what helps against the errors in a text.
func help(text string) (found []string) {
	for _, r := range remedies {
		expression := regexp.MustCompile(r.cause)
		if match := expression.FindStringSubmatchIndex(text); match != nil {
			found = append(found, string(expression.ExpandString(nil, r.remedy, text, match)))
		}
	}
	return found
}

var (
	// noise has the colors of messages, and what controller-gen and go run say after each error.
	noise = regexp.MustCompile("\x1b\\[[0-9;]*m|(?m)^Error: not all generators ran successfully\n|^run `controller-gen .*\n|^exit status \\d+\n")
	// relativePath is that of a file of a package, relative to pkg/apis.
	relativePath = regexp.MustCompile(`(?m)^[\w-]+/v\w+/[\w.-]+\.go:\d`)
	// foreignType is a type of another package that controller-gen can't describe.
	foreignType = regexp.MustCompile(`(?m)^/.* without JSON tag in type "(\w+)"$`)
	applyError  = regexp.MustCompile(`(pkg/generated/applyconfiguration/\S+\.go):(\d+)`)
)

// explain prints what a generator has written, with the paths of the tree instead of the copy's,
// and what helps.
func explain(log string) error {
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	copied, err := os.Getwd()
	if err != nil {
		return err
	}
	message := noise.ReplaceAllString(strings.ReplaceAll(string(text), copied+string(os.PathSeparator), ""), "")
	message = relativePath.ReplaceAllString(message, "pkg/apis/$0")
	if before, _, ok := strings.Cut(message, "\ngoroutine "); ok { // a panic
		message = before + "\n"
	}
	fmt.Fprint(os.Stderr, message)
	for _, match := range applyError.FindAllStringSubmatch(message, -1) {
		if field := fieldAt(match[1], match[2]); field != "" {
			fmt.Fprintf(os.Stderr, "codegen: %s is about the field %s\n", match[0], field)
		}
	}
	if match := foreignType.FindStringSubmatch(message); match != nil {
		fmt.Fprint(os.Stderr, fieldsOf(match[1]))
	}
	for _, remedy := range help(message) {
		fmt.Fprintf(os.Stderr, "codegen: %s\n", remedy)
	}
	return nil
}

// fieldAt returns the field that the method at a line of an apply configuration sets, or "".
func fieldAt(file, line string) string {
	fset := token.NewFileSet()
	source, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	number, _ := strconv.Atoi(line)
	if err != nil {
		return ""
	}
	for _, declaration := range source.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv == nil || number < fset.Position(function.Pos()).Line || fset.Position(function.End()).Line < number {
			continue
		}
		if field, ok := strings.CutPrefix(function.Name.Name, "With"); ok {
			return strings.TrimSuffix(baseName(function.Recv.List[0].Type), "ApplyConfiguration") + "." + field
		}
	}
	return ""
}

// fieldsOf returns the fields below pkg/apis that name a type of another package.
func fieldsOf(name string) string {
	var found strings.Builder
	expression := regexp.MustCompile(`\w\.` + name + `\b.*json:"`)
	files, _ := filepath.Glob("pkg/apis/*/*/*.go")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for i, line := range strings.Split(string(text), "\n") {
			if expression.MatchString(line) {
				fmt.Fprintf(&found, "codegen: %s:%d: %s\n", file, i+1, strings.TrimSpace(line))
			}
		}
	}
	return found.String()
}
