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

// Texts that are different in the new project.

package main

import (
	"bytes"
	"fmt"
)

// rewording replaces a text in the new project if omitting a line is not enough, as for
// the sample's relation to kubernetes/sample-controller. The text must occur exactly once
// in the file.
type rewording struct {
	file, from, to string
}

var rewordings = []rewording{
	{"SECURITY.md", "to the address that your fork names here (this project is a\nsample under a domain reserved for examples, and has none).", "to the maintainers."},
	{"internal/footest/deployment_builders.go", ", as\n// upstream's sample-controller v0.36.3 creates it, with the API server's defaults: 2 Pods\n", ", with\n// the API server's defaults: 2 Pods\n"},
	{"internal/footest/deployment_builders.go", " It equals upstream's, field for field.", ""},
	{"internal/plan/deployment.go", "They are those of\n// kubernetes/sample-controller: a Deployment's selector can't change, and other labels in\n// the template would restart every Pod when this program replaces that one.", "A\n// Deployment's selector can't change, and other labels in the template would restart\n// every Pod."},
	{"internal/plan/deployment_test.go", "TestNewDeploymentIsUpstreams", "TestNewDeployment"},
	{"docs/contract.md", "the tests work, [faults.md](faults.md) what becomes of the controller, and of\nupstream's, when things break.", "the tests work."},
	{"docs/contract.md", "; D7 in [faults.md](faults.md) |", " |"},
	{"docs/contract.md", ", and `make docs-test` compares them with those of a new one.", "."},
	{"docs/operations.md", "[faults.md](faults.md) has all of it, tried on a real control plane.\n\n", ""},
	{"docs/operations.md", "[benchmarks.md](benchmarks.md) has the measurements, on two cores that the API server and etcd share.", "Measured on two cores that the API server and etcd share:"},
	{"docs/testing.md", ", [faults.md](faults.md) the results of the fault tests.", "."},
	{"hack/check.sh", "THIRDPARTY=1 \"${DEVCLUSTER_BIN}\"", "\"${DEVCLUSTER_BIN}\""},
	{"sync_test.go", "a Deployment that upstream made is taken over", "a Deployment that another release made is taken over"},
	{"test/e2e/doc.go", "\n//\tTHIRDPARTY     1: also build and run test/thirdparty, a program compiled\n//\t               against upstream's clients; this downloads modules", ""},
	{"test/e2e/validation_test.go", "replicas null, as upstream's client sends it", "replicas null"},
}

// reword applies the rewordings of a file.
func reword(file string, data []byte) ([]byte, error) {
	for _, r := range rewordings {
		if r.file != file {
			continue
		}
		if n := bytes.Count(data, []byte(r.from)); n != 1 {
			return nil, fmt.Errorf("tools/newproject/reword.go replaces %q, which occurs %d times in %s, not once", r.from, n, file)
		}
		data = bytes.Replace(data, []byte(r.from), []byte(r.to), 1)
	}
	return data, nil
}
