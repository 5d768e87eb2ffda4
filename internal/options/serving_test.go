// SPDX-License-Identifier: Apache-2.0

// Tests of the errors that a server's start reports.

package options

import (
	"net"
	"net/http"
	"strings"
	"testing"

	kubefake "k8s.io/client-go/kubernetes/fake"
)

func TestWhatCannotBeServedIsReportedAtStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	tests := []struct {
		what string
		opts Serving
		says string
	}{
		{"the health address", Serving{healthAddress: address}, "-health-probe-bind-address=" + address + ": "},
		{"the metrics address", Serving{healthAddress: "127.0.0.1:0", metricsAddress: address}, "-metrics-bind-address=" + address + ": "},
		{"the certificate", Serving{metricsAddress: "127.0.0.1:0", certFile: "no-such.crt", keyFile: "no-such.key"}, "no-such.crt"},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			_, err := test.opts.Start(t.Context(), http.NotFoundHandler(), http.NotFoundHandler(), kubefake.NewClientset())
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("Got %v, want … %s", err, test.says)
			}
		})
	}
}
