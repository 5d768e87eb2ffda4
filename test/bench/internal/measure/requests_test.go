// SPDX-License-Identifier: Apache-2.0

// Test of the parser for the metrics.

package measure

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
