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
