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

// Test of the parser for the metrics.

package calls

import (
	"maps"
	"testing"
)

func TestParseFlows(t *testing.T) {
	got, err := parseFlows([]byte(`
# TYPE apiserver_flowcontrol_dispatched_requests_total counter
apiserver_flowcontrol_dispatched_requests_total{flow_schema="bench.get.foos",priority_level="workload-low"} 3
apiserver_flowcontrol_dispatched_requests_total{flow_schema="bench.get.foos",priority_level="another"} 4
apiserver_flowcontrol_dispatched_requests_total{flow_schema="bench.other",priority_level="workload-low"} 5
apiserver_flowcontrol_dispatched_requests_total{flow_schema="exempt",priority_level="exempt"} 1000
# TYPE apiserver_request_total counter
apiserver_request_total{verb="GET"} 7
`))
	if err != nil {
		t.Fatal(err)
	}
	if want := (map[string]float64{"get foos": 7, "other": 5}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
