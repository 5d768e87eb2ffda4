// SPDX-License-Identifier: Apache-2.0

// Tests of the command line: defaults, validation, -help and -version.

package options

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var defaultElection = Election{
	leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second, retryPeriod: 2 * time.Second,
	resourceName: "sample-controller",
}

func TestParse(t *testing.T) {
	opts, err := Parse([]string{"-kubeconfig=/k", "--master=https://m", "-namespace=n", "-image=mirror/nginx:1", "-workers=3", "-resync=0",
		"-kube-api-qps=50", "-kube-api-burst=60", "-request-timeout=5s", "-v=2"}, nil)
	must(t, err)
	want := Options{Cluster: Cluster{kubeconfig: "/k", master: "https://m", qps: 50, burst: 60}, Namespace: "n", Image: "mirror/nginx:1", MaxRollouts: 10, Workers: 3, Resync: 0, RequestTimeout: 5 * time.Second, Election: defaultElection, Logging: Logging{format: "text"}}
	if *opts != want {
		t.Errorf("parsed %+v, not %+v", *opts, want)
	}
}

func TestDefaultOptions(t *testing.T) {
	opts, err := Parse(nil, nil)
	must(t, err)
	want := Options{Cluster: Cluster{qps: -1, burst: 100}, Image: "nginx:latest", MaxRollouts: 10, Workers: 2, Resync: 30 * time.Second, RequestTimeout: 30 * time.Second, Election: defaultElection, Logging: Logging{format: "text"}}
	if *opts != want {
		t.Errorf("the defaults are %+v, not %+v", *opts, want)
	}
}

func TestBadOptionsAreRefusedInOneLineThatNamesThem(t *testing.T) {
	for arguments, wanted := range map[string][]string{
		"-workers=0":                 {"-workers=0", "1 or more"},
		"-image=":                    {"-image=\"\"", "name of an image"},
		"-workers=two":               {"-workers", "two"},
		"-resync=10ms":               {"-resync=10ms", "1s or more"},
		"-resync=-1s":                {"-resync=-1s"},
		"-kube-api-qps=0":            {"-kube-api-qps=0", "-1 (no limit)"},
		"-kube-api-burst=0":          {"-kube-api-burst=0"},
		"-request-timeout=0":         {"-request-timeout=0s"},
		"-namespace=Not_A_Namespace": {"-namespace=", "lowercase"},
		"-master=:nonsense":          {"-master"},
		"-no-such-flag":              {"-no-such-flag", "-help"},

		"-health-probe-bind-address=8081":               {"-health-probe-bind-address=", "[HOST]:PORT"},
		"-metrics-bind-address=8443":                    {"-metrics-bind-address=", "[HOST]:PORT"},
		"-metrics-bind-address=:8443 -tls-cert-file=/c": {"-tls-private-key-file", "both"},
		"-tls-cert-file=/c -tls-private-key-file=/k":    {"-tls-cert-file=/c", "-metrics-bind-address"},
		"-profiling": {"-profiling", "-metrics-bind-address"},

		"-leader-elect -leader-elect-lease-duration=10s":     {"-leader-elect-renew-deadline=10s", "less than the lease duration of 10s"},
		"-leader-elect -leader-elect-lease-duration=15500ms": {"-leader-elect-lease-duration=15.5s", "whole seconds"},
		"-leader-elect -leader-elect-renew-deadline=2s":      {"-leader-elect-renew-deadline=2s", "more than 2.4s"},
		"-leader-elect -leader-elect-retry-period=0":         {"-leader-elect-retry-period=0s", "more than 0"},
		"-leader-elect -leader-elect-resource-name=A_B":      {"-leader-elect-resource-name=", "lowercase"},
		"-leader-elect -leader-elect-resource-namespace=A_B": {"-leader-elect-resource-namespace=", "lowercase"},
		"extra":                       {"\"extra\"", "flags only"},
		"-workers=0 -kube-api-qps=-2": {"-workers=0", "-kube-api-qps=-2"},
	} {
		t.Run(arguments, func(t *testing.T) {
			_, err := Parse(strings.Fields(arguments), nil)
			if err == nil {
				t.Fatal("not refused")
			}
			for _, part := range wanted {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the message %q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the message has several lines: %q", err)
			}
		})
	}
}

func TestVersionIsAnsweredWhateverElseIsGiven(t *testing.T) {
	var answer strings.Builder
	if _, err := Parse([]string{"-workers=0", "--version"}, &answer); !errors.Is(err, ErrAnswered) {
		t.Errorf("-version returned %v", err)
	}
	if answer.String() != currentVersion().String() {
		t.Errorf("-version says %q", answer.String())
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	var help strings.Builder
	_, err := Parse([]string{"-help"}, &help)
	if !errors.Is(err, ErrAnswered) {
		t.Errorf("-help returned %v", err)
	}
	for _, name := range []string{"-kubeconfig", "-master", "-workers", "-resync", "-kube-api-qps", "-namespace", "-v value"} {
		if !strings.Contains(help.String(), "\n  "+name) {
			t.Errorf("-help does not list %s", name)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
