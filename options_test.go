/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var defaultElection = electionOptions{
	leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second, retryPeriod: 2 * time.Second,
	resourceName: "sample-controller",
}

func TestParseOptions(t *testing.T) {
	opts, err := parseOptions([]string{"-kubeconfig=/k", "--master=https://m", "-namespace=n", "-image=mirror/nginx:1", "-workers=3", "-resync=0",
		"-kube-api-qps=50", "-kube-api-burst=60", "-request-timeout=5s", "-v=2"}, nil)
	must(t, err)
	want := options{kubeconfig: "/k", master: "https://m", namespace: "n", image: "mirror/nginx:1", workers: 3, resync: 0, qps: 50, burst: 60, requestTimeout: 5 * time.Second, election: defaultElection, logging: loggingOptions{format: "text"}}
	if *opts != want {
		t.Errorf("parsed %+v, not %+v", *opts, want)
	}
}

func TestDefaultOptions(t *testing.T) {
	opts, err := parseOptions(nil, nil)
	must(t, err)
	want := options{image: "nginx:latest", workers: 2, resync: 30 * time.Second, qps: -1, burst: 100, requestTimeout: 30 * time.Second, election: defaultElection, logging: loggingOptions{format: "text"}}
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
			_, err := parseOptions(strings.Fields(arguments), nil)
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
	if _, err := parseOptions([]string{"-workers=0", "--version"}, &answer); !errors.Is(err, errAnswered) {
		t.Errorf("-version returned %v", err)
	}
	if answer.String() != currentVersion().String() {
		t.Errorf("-version says %q", answer.String())
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	var help strings.Builder
	_, err := parseOptions([]string{"-help"}, &help)
	if !errors.Is(err, errAnswered) {
		t.Errorf("-help returned %v", err)
	}
	for _, name := range []string{"-kubeconfig", "-master", "-workers", "-resync", "-kube-api-qps", "-namespace", "-v value"} {
		if !strings.Contains(help.String(), "\n  "+name) {
			t.Errorf("-help does not list %s", name)
		}
	}
}

func TestWhereTheClusterIsFound(t *testing.T) {
	folder := t.TempDir()
	fromFlag := writeKubeconfig(t, filepath.Join(folder, "flag"), "https://from-flag")
	fromEnvironment := writeKubeconfig(t, filepath.Join(folder, "environment"), "https://from-environment")
	home := filepath.Join(folder, "home")
	writeKubeconfig(t, filepath.Join(home, ".kube", "config"), "https://from-home")

	for name, row := range map[string]struct {
		opts        options
		environment string
		want        string
	}{
		"-kubeconfig before $KUBECONFIG": {options{kubeconfig: fromFlag}, fromEnvironment, "https://from-flag"},
		"$KUBECONFIG before home":        {options{}, fromEnvironment, "https://from-environment"},
		"-master in place of its server": {options{kubeconfig: fromFlag, master: "https://from-master"}, "", "https://from-master"},
		"-master alone":                  {options{master: "https://from-master"}, "", "https://from-master"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", row.environment)
			t.Setenv("HOME", home)
			row.opts.qps = -1
			config, namespace, err := row.opts.restConfig()
			must(t, err)
			if row.opts.kubeconfig == fromFlag && namespace != "of-flag" {
				t.Errorf("the namespace is %q, not that of the context", namespace)
			}
			if config.Host != row.want {
				t.Errorf("the server is %s, not %s", config.Host, row.want)
			}
			if config.QPS != -1 {
				t.Errorf("the client is limited to %v requests/s", config.QPS)
			}
		})
	}
}

func TestBadKubeconfigIsNamed(t *testing.T) {
	folder := t.TempDir()
	garbage := filepath.Join(folder, "garbage")
	must(t, os.WriteFile(garbage, []byte("neither YAML: nor: JSON"), 0o600))
	for path, part := range map[string]string{
		garbage:                         "garbage",
		filepath.Join(folder, "absent"): "no such file",
	} {
		_, _, err := (&options{kubeconfig: path}).restConfig()
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), part) {
			t.Errorf("the error for %s is %v", path, err)
		}
	}
}

func writeKubeconfig(t *testing.T, path, server string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, namespace: of-`+filepath.Base(path)+`}}]
clusters: [{name: test, cluster: {server: "`+server+`"}}]
`), 0o600))
	return path
}
