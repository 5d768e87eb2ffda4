// SPDX-License-Identifier: Apache-2.0

// Tests of rows of things outside the cluster.

package table

import (
	"context"
	"strings"
	"testing"
	"time"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
)

func TestCallsThatAreRefused(t *testing.T) {
	type call = plan.Call[*samplev1alpha1.Foo, string]
	for want, row := range map[string]struct {
		finalizer string
		change    func(call *call)
	}{
		`"Entry" has Undo, but the kind Site has no Finalizer`: {"", func(*call) {}},
		`"Entry" lacks Do`:                        {"example.com/entry", func(call *call) { call.Do = nil }},
		`"Entry" has a Poll below 1s`:             {"example.com/entry", func(call *call) { call.Poll = time.Second - 1 }},
		`"Entry" has Report, but not Recall`:      {"example.com/entry", func(call *call) { call.Recall = nil }},
		`"Entry" has Recall, but not Report`:      {"example.com/entry", func(call *call) { call.Report = nil }},
		`"Entry" has a negative Timeout`:          {"example.com/entry", func(call *call) { call.Timeout = -1 }},
		`"" lacks Kind`:                           {"example.com/entry", func(call *call) { call.Kind = "" }},
		`the kind Site has the Finalizer "entry"`: {"entry", func(*call) {}},
		"": {"example.com/entry", func(*call) {}},
	} {
		entry := call{
			Kind: "Entry", Poll: time.Second,
			Do:     func(context.Context, *samplev1alpha1.Foo) (string, error) { return "", nil },
			Undo:   func(context.Context, *samplev1alpha1.Foo) error { return nil },
			Report: func(foo *samplev1alpha1.Foo, answer string) { foo.Status.Selector = answer },
			Recall: func(foo *samplev1alpha1.Foo) string { return foo.Status.Selector },
		}
		row.change(&entry)
		kind := siteKind
		kind.Finalizer = row.finalizer
		err := Prepare(foos(newCache(t, &samplev1alpha1.Foo{}).Informer(), kind, Calls(entry)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("the error is %v, not that %s", err, want)
		}
	}
}

func TestTwoCallsOfAKindAreRefused(t *testing.T) {
	entry := plan.Call[*samplev1alpha1.Foo, string]{
		Kind: "Entry", Do: func(context.Context, *samplev1alpha1.Foo) (string, error) { return "", nil },
	}
	same := []Row[*samplev1alpha1.Foo]{Calls(entry), Calls(entry)}
	err := Prepare(foos(newCache(t, &samplev1alpha1.Foo{}).Informer(), siteKind, same...))
	if err == nil || err.Error() != "the table of Site has two calls of the kind Entry" {
		t.Errorf("the error is %v", err)
	}
}
