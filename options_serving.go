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
	"flag"
	"fmt"
	"net"
)

// servingOptions are the flags of what the controller serves. Nothing listens
// unless an address is given.
type servingOptions struct {
	healthAddress  string
	metricsAddress string
	certFile       string
	keyFile        string
	profiling      bool
}

func (o *servingOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", "",
		"Address, as [HOST]:PORT, at which /healthz and /readyz answer over HTTP. Left out: none.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "",
		"Address, as [HOST]:PORT, at which /metrics answers over HTTPS whoever the API server allows to get it. Left out: none.")
	flags.StringVar(&o.certFile, "tls-cert-file", "",
		"File with the certificate, and those of its issuers, for the metrics' address. It is read again when it changes. Left out: one signed by itself, made at each start.")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "",
		"File with the private key of -tls-cert-file.")
	flags.BoolVar(&o.profiling, "profiling", false,
		"Serve /debug/pprof/ at the metrics' address, to whoever the API server allows to get it.")
}

// problems lists what can't be meant.
func (o *servingOptions) problems() []string {
	var problems []string
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	checkAddress := func(name, address string) {
		if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
			refuse("-%s=%q: must be [HOST]:PORT: %v", name, address, err)
		}
	}
	checkAddress("health-probe-bind-address", o.healthAddress)
	checkAddress("metrics-bind-address", o.metricsAddress)
	if (o.certFile == "") != (o.keyFile == "") {
		refuse("-tls-cert-file and -tls-private-key-file go together: give both or neither")
	}
	if o.metricsAddress == "" && o.certFile != "" {
		refuse("-tls-cert-file=%s: without -metrics-bind-address nothing uses it", o.certFile)
	}
	if o.metricsAddress == "" && o.profiling {
		refuse("-profiling: needs -metrics-bind-address, where the profiles are served")
	}
	return problems
}
