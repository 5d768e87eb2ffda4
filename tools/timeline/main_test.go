// SPDX-License-Identifier: Apache-2.0

// Tests of the command.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	createFoo = `{"stage":"ResponseComplete","requestURI":"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos","verb":"create",` +
		`"user":{"username":"alice"},"userAgent":"kubectl/v1.37.0","objectRef":{"resource":"foos","namespace":"default","name":"web",` +
		`"apiGroup":"samplecontroller.k8s.io"},"responseStatus":{"code":201},"stageTimestamp":"2026-11-21T11:23:15.5Z"}` + "\n"
	renewLease = `{"stage":"ResponseComplete","requestURI":"/a","verb":"update","objectRef":{"resource":"leases"},` +
		`"responseStatus":{"code":200},"stageTimestamp":"2026-11-21T11:23:15.5Z"}` + "\n"
	updateStatus = `{"stage":"ResponseComplete","requestURI":"/a","verb":"update","user":{"username":"system:serviceaccount:kube-system:deployment-controller"},` +
		`"userAgent":"kube-controller-manager/v1.37.0","objectRef":{"resource":"deployments","subresource":"status","namespace":"other","name":"web"},` +
		`"responseStatus":{"code":409},"stageTimestamp":"2026-11-21T11:23:15.6Z"}` + "\n"

	hostile = `{"stage":"ResponseComplete","requestURI":"/a","verb":"update","userAgent":"\u001b]52;c;AAAA\u0007\n\u009b\u202e/1",` +
		`"objectRef":{"resource":"secrets","name":"\r\u001b[2J"},"responseStatus":{"code":403},"stageTimestamp":"2026-11-21T11:23:15.5Z"}` + "\n"
	hostileLine = `11:23:15.500  \x1b]52;c;AAAA\a\n\u009b\u202e            update  403  secrets              \r\x1b[2J` + "\n"

	statusLine = "11:23:15.600  deployment-controller      update  409  deployments/status   web\n"
)

// fooLine pads the resource here, because its length depends on the kind.
var fooLine = fmt.Sprintf("11:23:15.500  kubectl                    create  201  %-20s web\n", "foos")

func TestRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log, output := write("audit.log", createFoo), filepath.Join(dir, "out")
	tests := map[string]struct {
		args  []string
		stdin string
		// file is the beginning of the output, message the messages, and err a part of the
		// error.
		file, message, err string
	}{
		"a picture":                 {[]string{"-audit=" + log, "-o=" + output + ".svg"}, "", "<svg ", output + ".svg: 1 write in 1 panel\n", ""},
		"a page":                    {[]string{"-audit=" + log, "-o=" + output + ".html"}, "", "<!DOCTYPE html>", output + ".html: 1 write in 1 panel\n", ""},
		"standard input and output": {[]string{"-audit=-", "-o=-"}, createFoo, "<svg ", "", ""},
		"two files":                 {[]string{"-audit=" + log, "-audit=" + write("2.log", createFoo), "-o=" + output + ".svg"}, "", "<svg ", output + ".svg: 2 writes in 1 panel\n", ""},
		"a selection":               {[]string{"-audit=-", "-o=-", "-object=foo/web", "-namespace=default", "-you=alice"}, createFoo, "<svg ", "", ""},
		"as text":                   {[]string{"-audit=-", "-text"}, createFoo + renewLease + updateStatus, fooLine + statusLine, "", ""},
		"text for a terminal":       {[]string{"-audit=-", "-text"}, hostile, hostileLine, "", ""},
		"text of a namespace":       {[]string{"-audit=-", "-text", "-namespace=default"}, createFoo + updateStatus, fooLine, "", ""},
		"text of an object":         {[]string{"-audit=-", "-text", "-object=foo/web"}, createFoo, "", "", "-object: must not be given with -text"},
		"a log that was cut":        {[]string{"-audit=-", "-o=-"}, createFoo[20:] + createFoo + createFoo[:99], "<svg ", "standard input: skipped 1 of 3 lines, which are not audit events\nstandard input: skipped the last line, which is incomplete\n", ""},
		"no log":                    {nil, "", "", "", "-audit is missing: name the audit log to draw, or - for standard input"},
		"no such log":               {[]string{"-audit=" + dir + "/none"}, "", "", "", "none: no such file or directory"},
		"a folder":                  {[]string{"-audit=" + dir}, "", "", "", "is a directory"},
		"an empty log":              {[]string{"-audit=-"}, "", "", "", "standard input is empty"},
		"another log":               {[]string{"-audit=-"}, "I1121 Hello\nI1121 World", "", "", "standard input is not an audit log: none of its lines is an event of audit.k8s.io as JSON"},
		"nothing to draw":           {[]string{"-audit=-", "-o=-"}, renewLease, "", "", "no write to draw, but these: leases (1); see -object and -namespace in -help"},
		"no such object":            {[]string{"-audit=-", "-o=-", "-object=foo/b"}, createFoo, "", "", "no write to draw, but these: writes on other objects (1); see"},
		"no object":                 {[]string{"-audit=-", "-object=/"}, "", "", "", `"/": must be RESOURCE/NAME, RESOURCE or all (see -help)`},
		"no such format":            {[]string{"-audit=-", "-o=x.png"}, "", "", "", "-o=x.png: must end with .svg or .html"},
		"an argument":               {[]string{log}, "", "", "", "give a log as -audit=FILE"},
		"nowhere to write":          {[]string{"-audit=-", "-o=" + dir + "/none/x.svg"}, createFoo, "", "", "no such file or directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, messages strings.Builder
			err := run(test.args, strings.NewReader(test.stdin), &stdout, &messages)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want %s", err, test.err)
				}
				return
			}
			document := stdout.String()
			if path := strings.TrimPrefix(test.args[len(test.args)-1], "-o="); strings.HasPrefix(path, output) {
				content, readErr := os.ReadFile(path)
				err = errors.Join(err, readErr)
				document = string(content)
			}
			if err != nil || messages.String() != test.message || !strings.HasPrefix(document, test.file) {
				t.Errorf("got %v, %q, %.20q; want %q, %q", err, messages.String(), document, test.message, test.file)
			}
		})
	}
}

func TestHelpAndUsage(t *testing.T) {
	var help strings.Builder
	if err := run([]string{"-help"}, nil, &help, nil); err != nil || !strings.Contains(help.String(), "-audit") {
		t.Errorf("-help: %v, %q", err, help.String())
	}
	if err := run(nil, nil, nil, nil); !errors.As(err, new(usageError)) {
		t.Errorf("without flags: %v", err)
	}
}
