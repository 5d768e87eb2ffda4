// SPDX-License-Identifier: Apache-2.0

// Tests of the printed lines.

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestStopwatchStartsAtYourChangeAfterAPause(t *testing.T) {
	var watch stopwatch
	for _, step := range []struct {
		say     string
		who     string
		at      time.Time
		want    int64
		started bool
	}{
		{"the first change", you, ms(1000), 0, true},
		{"another's", sampleController, ms(1010), 10, false},
		{"yours, in the same go", you, ms(1020), 20, false},
		{"another's after a pause", sampleController, ms(9000), 8000, false},
		{"yours after a pause", you, ms(10000), 0, true},
		{"yours through another program", you + " (x)", ms(11000), 0, true},
	} {
		if got, started := watch.read(line{who: step.who, at: step.at}); got != step.want || started != step.started {
			t.Errorf("%s: got %d, %v; want %d, %v", step.say, got, started, step.want, step.started)
		}
	}
}

func TestFormat(t *testing.T) {
	// Of Kubernetes' actors and kinds: the columns must not depend on the length of this
	// project's names.
	status := line{who: deploymentController, did: reported, kind: "Pod", name: "web", note: "1/1 available, Ready"}
	ours := status
	ours.who = sampleController
	bare := line{who: "garbage-collector", did: deleted, kind: "Pod", name: "web-1-x"}
	tests := map[string]struct {
		style style
		line  line
		want  string
	}{
		"into a pipe":          {style{}, status, "   12 deployment-controller  reported Pod web                           1/1 available, Ready"},
		"without a note":       {style{}, bare, "   12 garbage-collector      deleted  Pod web-1-x"},
		"on a wide terminal":   {style{columns: 100}, status, "   12 deployment-controller  reported Pod web                           1/1 available, Ready"},
		"on a narrow terminal": {style{columns: 80}, status, "   12 deployment-controller  reported Pod web 1/1 available, Ready"},
		"on a tiny terminal":   {style{columns: 50}, status, "   12 deployment-controller  reported Pod web\n" + strings.Repeat(" ", 31) + "1/1 available,\n" + strings.Repeat(" ", 31) + "Ready"},
		"in colour":            {style{colour: true}, ours, "\x1b[2m   12\x1b[0m \x1b[36m" + fmt.Sprintf("%-21s", sampleController) + "\x1b[0m  reported Pod web                           \x1b[32m1/1 available, Ready\x1b[0m"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.style.format(test.line, 12); got != test.want {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestTheUsualLinesFitAHundredColumns(t *testing.T) {
	for _, l := range []line{
		{who: deploymentController, did: created, kind: "ReplicaSet", name: "example-web-694f5774b", note: "owner Deployment, 1 replica"},
		{who: replicaSetController, did: created, kind: "Pod", name: "example-web-694f5774b-ndqnt", note: "owner ReplicaSet"},
		{who: deploymentController, did: reported, kind: "Deployment", name: "example-web", note: "10/10 available, Progressing"},
	} {
		if got := (style{columns: wide}).format(l, 99999); len(got) > wide || strings.Contains(got, "\n") {
			t.Errorf("%d columns: %s", len(got), got)
		}
	}
}

func TestWantsColour(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want bool
	}{
		"a terminal":             {map[string]string{"TERM": "xterm"}, true},
		"a dumb one":             {map[string]string{"TERM": "dumb"}, false},
		"one without a name":     {nil, false},
		"the user wants none":    {map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		"the user has no wishes": {map[string]string{"TERM": "xterm", "NO_COLOR": ""}, true},
	}
	for name, test := range tests {
		if got := wantsColour(func(key string) string { return test.env[key] }); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{"/a/b-1": "/a/b-1", "/a b": "'/a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'"} {
		if got := quote(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
