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

// The workloads of TestController.

package simulation

// workload holds the steps of users in one run.
type workload struct {
	name string
	// before holds the steps before the controller starts.
	before []step
	steps  []step
}

var workloads = []workload{
	{name: "scale", steps: []step{
		create("a", "web", 2), scale("a", 3), scale("a", 1),
	}},
	{name: "rename", steps: []step{
		create("a", "web", 2), rename("a", "api"), rename("a", "web"),
	}},
	{name: "rename and scale", before: []step{create("a", "web", 1)}, steps: []step{
		atOnce(rename("a", "api"), scale("a", 2)), atOnce(rename("a", "db"), rename("a", "api")),
	}},
	{name: "drift", steps: []step{
		create("a", "web", 1), drift("web"), atOnce(edit("web", "1"), scale("a", 2)), atOnce(edit("web", "2"), drift("web")), deleteDeployment("web"),
	}},
	{name: "recreate", steps: []step{
		create("a", "web", 1), deleteFoo("a"), create("a", "web", 1), atOnce(deleteFoo("a"), create("a", "web", 2)),
	}},
	{name: "foreground", steps: []step{
		create("a", "web", 1), deleteFooInForeground("a"), create("a", "web", 1),
	}},
	{name: "two Foos", steps: []step{
		create("a", "web", 1), create("b", "web", 2), deleteFoo("a"),
	}},
	{name: "foreign", before: []step{createForeign("web")}, steps: []step{
		create("a", "web", 1), deleteDeployment("web"),
	}},
	{name: "adopt", before: []step{createForeign("web")}, steps: []step{
		create("a", "web", 2), handOver("web", "a"), edit("web", "1"),
	}},
	{name: "rename to a taken name", before: []step{createForeign("api"), create("a", "web", 1)}, steps: []step{
		rename("a", "api"), deleteDeployment("api"),
	}},
	{name: "autoscaled", steps: []step{
		create("a", "web", 0), scaleDeployment("web", 2), rename("a", "api"),
	}},
}
