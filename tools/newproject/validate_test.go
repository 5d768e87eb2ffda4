// SPDX-License-Identifier: Apache-2.0

// Tests of the rules for names.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// good is a request that breaks no rule.
var good = request{Module: "github.com/acme/widgets", Group: "acme.dev", Version: "v1alpha1", Kind: "Widget"}

func TestNames(t *testing.T) {
	for say, test := range map[string]struct {
		change func(*request)
		want   string // no error if it is empty
	}{
		"the plain case":                      {func(*request) {}, ""},
		"a group with a dash":                 {func(r *request) { r.Group = "my-team.acme.dev" }, ""},
		"an acronym":                          {func(r *request) { r.Kind = "HTTPRoute" }, ""},
		"a kind that begins with the old one": {func(r *request) { r.Kind = "FooTruck" }, ""},
		"an irregular plural":                 {func(r *request) { r.Kind, r.Plural = "Person", "people" }, ""},
		"a plural that equals the kind":       {func(r *request) { r.Kind, r.Plural = "Sheep", "sheep" }, ""},
		"a short name":                        {func(r *request) { r.Short = "wd" }, ""},
		"55 characters":                       {func(r *request) { r.Kind = strings.Repeat("K", 55) }, ""},

		"two broken rules":             {func(r *request) { r.Group, r.Kind = "acme", "widget" }, "as acme.dev\n-kind=widget: must be"},
		"no module":                    {func(r *request) { r.Module = "" }, "must be a path that go get accepts"},
		"a module without a domain":    {func(r *request) { r.Module = "widgets" }, "must be a path that go get accepts, with a domain"},
		"the library's module":         {func(r *request) { r.Module = "example.com/sample-controller" }, "is the library's"},
		"a program with a digit first": {func(r *request) { r.Module = "github.com/acme/3widgets" }, "must begin with a letter"},
		"a long program":               {func(r *request) { r.Module = "github.com/acme/" + strings.Repeat("w", 51) }, "at most 50"},
		"a program named hack":         {func(r *request) { r.Module = "github.com/acme/hack" }, "must not be hack"},
		"a namespace of Kubernetes":    {func(r *request) { r.Module = "github.com/acme/kube-widgets" }, "becomes the name of a namespace"},
		"no group":                     {func(r *request) { r.Group = "" }, "-group is missing"},
		"a group with capitals":        {func(r *request) { r.Group = "Acme.dev" }, "lower case"},
		"a group without a dot":        {func(r *request) { r.Group = "acme" }, "must have a dot"},
		"a protected group":            {func(r *request) { r.Group = "widgets.k8s.io" }, "are protected"},
		"a group with a digit first":   {func(r *request) { r.Group = "3scale.dev" }, "must begin with a letter"},
		"a group that is a keyword":    {func(r *request) { r.Group = "type.acme.dev" }, "must not be a word of the language"},
		"a group that is internal":     {func(r *request) { r.Group = "internal.acme.dev" }, "nor main, init, internal"},
		"a long group":                 {func(r *request) { r.Group = strings.Repeat("a.", 123) + "dev" }, "at most 253"},
		"a version without a v":        {func(r *request) { r.Version = "1" }, "-version=1: must be v1"},
		"no version":                   {func(r *request) { r.Version = "" }, "must be v1"},
		"no kind":                      {func(r *request) { r.Kind = "" }, "-kind is missing"},
		"a kind in small letters":      {func(r *request) { r.Kind = "widget" }, "a capital letter, then"},
		"a kind with an underscore":    {func(r *request) { r.Kind = "My_Widget" }, "letters and digits"},
		"a kind of one letter":         {func(r *request) { r.Kind = "W" }, "at least one"},
		"a long kind":                  {func(r *request) { r.Kind = strings.Repeat("K", 56) }, "at most 55"},
		"a list":                       {func(r *request) { r.Kind = "WidgetList" }, "must not end in List"},
		"a keyword":                    {func(r *request) { r.Kind = "Type" }, "a word of Go"},
		"a predeclared type":           {func(r *request) { r.Kind = "String" }, "a word of Go"},
		"Kubernetes' Deployment":       {func(r *request) { r.Kind = "Deployment" }, "Kubernetes' own kinds (apps)"},
		"Kubernetes' Pod":              {func(r *request) { r.Kind = "Pod" }, "Kubernetes' own kinds (core)"},
		"a plural with a dash":         {func(r *request) { r.Plural = "wid-gets" }, "must begin with a lower-case letter"},
		"a plural that is too long":    {func(r *request) { r.Kind = strings.Repeat("K", 63) }, "-plural="},
		"a plural that is a keyword":   {func(r *request) { r.Plural = "range" }, "a word of Go"},
		"Kubernetes' plural":           {func(r *request) { r.Plural = "pods" }, "Kubernetes' own resources (core)"},
		"a short name with a dash":     {func(r *request) { r.Short = "w-d" }, "must begin with a lower-case letter"},
		"Kubernetes' short name":       {func(r *request) { r.Short = "po" }, "must not be one of Kubernetes' own names"},
	} {
		r := good
		test.change(&r)
		if err := checkNames(r); (err == nil) != (test.want == "") || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s: got %v, want %q in it", say, err, test.want)
		}
	}
}

func TestCheckDir(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "root")
	for _, dir := range []string{"root/docs", "empty", "full"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"file", "full/file"} {
		if err := os.WriteFile(filepath.Join(base, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(root, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"new": "", "empty": "", "rootbeer": "",
		"full": "is not empty", "file": "not a directory", "no/such/new": "must exist",
		"root": "must not be inside this project", "root/new": "must not be inside this project", "link/new": "must not be inside this project", "link": "must not be inside this project",
	} {
		got, err := checkDir(filepath.Join(base, dir), root)
		switch {
		case want == "" && (err != nil || got != filepath.Join(base, dir)):
			t.Errorf("%s: got %s, %v", dir, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q in it", dir, err, want)
		}
	}
	if _, err := checkDir("", root); err == nil {
		t.Error("no directory: no error")
	}
}

// TestModulePaths covers paths that go get accepts, and paths that it rejects.
func TestModulePaths(t *testing.T) {
	for path, want := range map[string]bool{
		"acme.dev": true, "github.com/acme/widgets/v10": true, "a-b.example/x": true, "example.org/net/Edge.Routes": true, "example.org/_x/~y/-z": true,
		"": false, "widgets": false, "GitHub.com/acme/widgets": false, "-a.dev/x": false, "under_score.dev/x": false, "github.com//widgets": false,
		"github.com/acme/my widgets": false, "github.com/.acme": false, "github.com/acme/a+b": false, "github.com/acme/v1": false, "acme.dev/v02": false,
	} {
		r := good
		r.Module = path
		err := checkNames(r)
		if isRefused := err != nil && strings.Contains(err.Error(), "must be a path that go get accepts"); isRefused == want {
			t.Errorf("%q: got %v", path, err)
		}
	}
}
