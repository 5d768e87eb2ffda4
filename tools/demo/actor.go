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

// Who made a change.

package main

import (
	"strings"

	"example.com/sample-controller/internal/audit"
)

// The actors that the steps name; others are called what the API server calls them.
const (
	you                  = "you"
	sampleController     = "sample-controller"
	deploymentController = "deployment-controller"
	replicaSetController = "replicaset-controller"
	scheduler            = "kube-scheduler"
	kubelet              = audit.KwokKubelet
	collector            = "garbage-collector"
)

// actorOf says who made a request, given the name of the user at the terminal.
func actorOf(r audit.Write, self string) string {
	switch {
	case r.User == self && strings.HasPrefix(r.Manager, "kubectl"):
		return you
	case r.User == self:
		return you + " (" + r.Manager + ")"
	}
	return audit.ActorOf(r).Name
}

// isYou reports whether an actor is the user at the terminal.
func isYou(who string) bool { return who == you || strings.HasPrefix(who, you+" (") }
