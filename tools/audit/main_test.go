// SPDX-License-Identifier: Apache-2.0

// Tests of the command.

package main

import (
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
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(createFoo), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args           []string
		stdin          string
		out, says, err string
	}{
		"a line for each write": {[]string{"-"}, createFoo + renewLease + updateStatus, fooLine + statusLine, "", ""},
		"a namespace":           {[]string{"-namespace=default", "-"}, createFoo + updateStatus, fooLine, "", ""},
		"two logs":              {[]string{path, "-"}, updateStatus, fooLine + statusLine, "", ""},
		"for a terminal":        {[]string{"-"}, hostile, hostileLine, "", ""},
		"a log that was cut":    {[]string{"-"}, createFoo + createFoo[:99], fooLine, "standard input: the last line is incomplete\n", ""},
		"no log":                {nil, "", "", "", "name the audit logs to print"},
		"no such log":           {[]string{path + "x"}, "", "", "", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, messages strings.Builder
			err := run(test.args, strings.NewReader(test.stdin), &out, &messages)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got %v, want %q", err, test.err)
			}
			if out.String() != test.out || messages.String() != test.says {
				t.Errorf("got %q and %q, want %q and %q", out.String(), messages.String(), test.out, test.says)
			}
		})
	}
}
