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

import "strings"

// The actors that the steps name; others are called what the API server calls them.
const (
	you                  = "you"
	sampleController     = "sample-controller"
	deploymentController = "deployment-controller"
	replicaSetController = "replicaset-controller"
	scheduler            = "kube-scheduler"
	kubelet              = "kwok (as kubelet)"
)

// actorOf says who made a request, given the name of the user at the terminal.
func actorOf(r record, self string) string {
	switch {
	case r.user == self && strings.HasPrefix(r.manager, "kubectl"):
		return you
	case r.user == self:
		return you + " (" + r.manager + ")"
	case r.user == "kwok":
		return kubelet
	case strings.HasPrefix(r.user, "system:serviceaccount:"):
		name := r.user[strings.LastIndex(r.user, ":")+1:]
		return strings.TrimPrefix(name, "generic-")
	}
	return strings.TrimPrefix(r.user, "system:")
}

// isYou tells whether an actor is the user at the terminal.
func isYou(who string) bool { return who == you || strings.HasPrefix(who, you+" (") }
