// SPDX-License-Identifier: Apache-2.0

// Tests of the command line: defaults, validation, -help and -version.

package options

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	kubefake "k8s.io/client-go/kubernetes/fake"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// gadgets is a program without flags of its own.
var gadgets = Program{Name: "gadget-controller", Purpose: "reconciles Gadgets.", Kind: "Gadget", Plural: "Gadgets"}

// A program with a flag of its own. Its main function passes os.Args[1:].
func Example() {
	var color string
	program := Program{
		Name: "gadget-controller", Purpose: "paints Gadgets.", Kind: "Gadget", Plural: "Gadgets",
		AddFlags: func(flags *flag.FlagSet) { flags.StringVar(&color, "color", "blue", "Color of all Gadgets.") },
		Check: func(refuse func(isWrong bool, format string, args ...any)) {
			refuse(color == "", "-color=%q: must be the name of a color", color)
		},
	}
	for _, args := range [][]string{{"-color=red", "-workers=5"}, {"-color=", "-workers=0"}} {
		opts, err := Parse(args, os.Stdout, program)
		fmt.Printf("color %q, %d workers, %v\n", color, opts.Workers, err)
	}
	// Output:
	// color "red", 5 workers, <nil>
	// color "", 0 workers, -color="": must be the name of a color; -workers=0: must be 1 or more
}

func TestParse(t *testing.T) {
	defaults := func() *Options {
		return &Options{
			Cluster: Cluster{qps: -1, burst: 100}, Workers: 2, Resync: 30 * time.Second, RequestTimeout: 30 * time.Second,
			Election: Election{
				leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second, retryPeriod: 2 * time.Second,
				resourceName: "gadget-controller",
			},
			Logging: Logging{program: "gadget-controller", config: logsapi.NewLoggingConfiguration()},
		}
	}
	set := defaults()
	set.Cluster = Cluster{kubeconfig: "/k", master: "https://m", qps: 50, burst: 60}
	set.Namespace, set.Workers, set.Resync, set.RequestTimeout = "n", 3, 0, 5*time.Second
	set.Logging.config.Verbosity = 2
	for arguments, want := range map[string]*Options{
		"": defaults(),
		"-kubeconfig=/k --master=https://m -namespace=n -workers=3 -resync=0 " +
			"-kube-api-qps=50 -kube-api-burst=60 -request-timeout=5s -v=2": set,
	} {
		got, err := Parse(strings.Fields(arguments), nil, gadgets)
		must(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: parsed %+v, not %+v", arguments, got, want)
		}
	}
}

func TestBadOptionsAreRefusedInOneLineThatNamesThem(t *testing.T) {
	for arguments, wanted := range map[string][]string{
		"-workers=0":                 {"-workers=0", "1 or more"},
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
		"-metrics-bind-address=:8443 -tls-cert-file=/c": {"-tls-private-key-file", "together"},
		"-tls-cert-file=/c -tls-private-key-file=/k":    {"-tls-cert-file=/c", "-metrics-bind-address"},
		"-profiling": {"-profiling", "-metrics-bind-address"},

		"-logging-format=JSON":                       {`-logging-format="JSON": must be text or json`},
		"-logging-format=":                           {`-logging-format="": must be text or json`},
		"-logging-format=json -vmodule=controller=4": {"-vmodule=controller=4: has no effect with -logging-format=json"},

		// Of klog's flags, only those of Kubernetes' components remain.
		"-logtostderr":                  {"not defined: -logtostderr"},
		"-logtostderr=false":            {"not defined"},
		"-log_dir=/var/log":             {"not defined"},
		"-log_file=/var/log/controller": {"not defined"},
		"-stderrthreshold=WARNING":      {"not defined"},

		"-leader-elect -leader-elect-lease-duration=10s":     {"-leader-elect-renew-deadline=10s", "less than the lease duration of 10s"},
		"-leader-elect -leader-elect-lease-duration=15500ms": {"-leader-elect-lease-duration=15.5s", "whole seconds"},
		"-leader-elect -leader-elect-renew-deadline=2s":      {"-leader-elect-renew-deadline=2s", "more than 2.4s"},
		"-leader-elect -leader-elect-retry-period=0":         {"-leader-elect-retry-period=0s", "more than 0"},
		"-leader-elect -leader-elect-renew-deadline=2400ms":  {"-leader-elect-renew-deadline=2.4s", "more than 2.4s"},
		"-leader-elect -leader-elect-resource-name=A_B":      {"-leader-elect-resource-name=", "lowercase"},
		"-leader-elect -leader-elect-resource-name=":         {`-leader-elect-resource-name=""`},
		"-leader-elect -leader-elect-resource-namespace=A_B": {"-leader-elect-resource-namespace=", "lowercase"},
		"extra":                       {"\"extra\"", "flags only"},
		"-workers=0 -kube-api-qps=-2": {"-workers=0", "-kube-api-qps=-2"},
	} {
		t.Run(arguments, func(t *testing.T) {
			opts, err := Parse(strings.Fields(arguments), nil, gadgets)
			if err == nil || opts == nil {
				t.Fatal("not refused, or without the options, which say how to log the error")
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

// The first values that flags accept.
func TestGoodOptionsAreAccepted(t *testing.T) {
	for _, arguments := range []string{
		"-workers=1", "-resync=1s", "-request-timeout=1s", "-kube-api-burst=1", "-metrics-bind-address=:8443 -profiling",
		"-leader-elect -leader-elect-lease-duration=1s -leader-elect-renew-deadline=900ms -leader-elect-retry-period=100ms",
		"-leader-elect-resource-name=A_B", // without an election
		"-v=4", "--v=4", "-v 4", "-vmodule=controller=4", "-logging-format=json -v=4",
	} {
		if _, err := Parse(strings.Fields(arguments), nil, gadgets); err != nil {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}

func TestTheHeapKeepsToNinetyPercentOfTheMemory(t *testing.T) {
	const before = 1 << 40
	for _, row := range []struct {
		name, limit, own string
		want             int64
		refused          bool
	}{
		{"256 MiB", "268435456", "", 241591905, false},
		{"no limit", "", "", before, false},
		{"GOMEMLIMIT is set", "268435456", "1TiB", before, false},
		{"not a number", "256Mi", "", before, true},
		{"a negative number", "-1", "", before, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv(memoryLimitVariable, row.limit)
			t.Setenv("GOMEMLIMIT", row.own)
			was := debug.SetMemoryLimit(before)
			defer debug.SetMemoryLimit(was)
			err := LimitMemory()
			if got := debug.SetMemoryLimit(-1); got != row.want || (err != nil) != row.refused {
				t.Errorf("The limit is %d (%v), want %d", got, err, row.want)
			}
		})
	}
}

func TestWhatCannotBeServedIsReportedAtStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	for says, opts := range map[string]Serving{
		"-health-probe-bind-address=" + address + ": ": {healthAddress: address},
		"-metrics-bind-address=" + address + ": ":      {healthAddress: "127.0.0.1:0", metricsAddress: address},
		"no-such.crt": {metricsAddress: "127.0.0.1:0", certFile: "no-such.crt", keyFile: "no-such.key"},
	} {
		_, err := opts.Start(t.Context(), http.NotFoundHandler(), http.NotFoundHandler(), kubefake.NewClientset())
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Got %v, want … %s", err, says)
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
		flags       Cluster
		environment string
		want        string
	}{
		"-kubeconfig before $KUBECONFIG": {Cluster{kubeconfig: fromFlag}, fromEnvironment, "https://from-flag"},
		"$KUBECONFIG before home":        {Cluster{}, fromEnvironment, "https://from-environment"},
		"-master instead of its server":  {Cluster{kubeconfig: fromFlag, master: "https://from-master"}, "", "https://from-master"},
		"-master alone":                  {Cluster{master: "https://from-master"}, "", "https://from-master"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", row.environment)
			t.Setenv("HOME", home)
			row.flags.qps = -1
			config, namespace, err := row.flags.RESTConfig()
			must(t, err)
			if row.flags.kubeconfig == fromFlag && namespace != "of-flag" {
				t.Errorf("the namespace is %q, not the context's", namespace)
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
	garbage := filepath.Join(t.TempDir(), "garbage")
	must(t, os.WriteFile(garbage, []byte("neither YAML: nor: JSON"), 0o600))
	for _, path := range []string{garbage, filepath.Join(t.TempDir(), "absent")} {
		_, _, err := (&Cluster{kubeconfig: path}).RESTConfig()
		if err == nil || !strings.Contains(err.Error(), "-kubeconfig="+path) {
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestVersionSaysWhatIsKnown(t *testing.T) {
	const built = "dep\tk8s.io/api\tv0.37.2\th1:sum\ndep\tk8s.io/client-go\tv0.37.4\n=>\t../client-go\t\t\nbuild\tGOOS=linux\nbuild\tvcs.revision=0123456789abcdef\n"
	const recorded = "mod\texample.com/gadget-controller\tv1.2.3\ndep\tgopkg.in/yaml.v3\tv3.0.1\n=>\t../yaml\t\t\nbuild\tCGO_ENABLED=0\n"
	for text, want := range map[string]string{
		recorded + built: "gadget-controller v1.2.3\ngo\tgo1.26.0\n" + built,
		"":               "gadget-controller (devel)\ngo\tgo1.26.0\n", // of another build system
	} {
		info, err := debug.ParseBuildInfo(text)
		must(t, err)
		info.GoVersion = "go1.26.0"
		if got := describeVersion(gadgets.Name, info); got != want {
			t.Errorf("-version says\n%s\nnot\n%s", got, want)
		}
	}
}
