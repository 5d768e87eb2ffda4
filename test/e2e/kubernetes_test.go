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

// Tests of the cluster itself.

package e2e

import (
	"testing"
)

// TestTheClusterBehavesLikeKubernetes checks the behavior that controllers depend on. On
// a development cluster it shows that the cluster is complete; on any other cluster it
// shows that the checks are right.
func TestTheClusterBehavesLikeKubernetes(t *testing.T) {
	t.Parallel()
	checkAll(t, newNamespace(t), []scenario{
		{"a Node whose heartbeats stop goes NotReady", checkNodeHeartbeats}, // the longest first
		{"a Deployment makes a ReplicaSet, which makes Pods, which run on nodes", checkDeploymentChain},
		{"a killed Pod is replaced", checkPodReplaced},
		{"a ReplicationController keeps its number of Pods", checkReplicationController},
		{"a Job of 5 completions runs no more than 2 Pods at once", checkJob},
		{"a StatefulSet scaled from 1 to 2 has ordered names", checkStatefulSet},
		{"a DaemonSet has a Pod on each node, and a ControllerRevision", checkDaemonSet},
		{"a deletion in the background also deletes the children", checkDeletedInBackground},
		{"a deletion in the foreground waits for the children", checkDeletedInForeground},
		{"a deletion that orphans leaves the children", checkDeletedWithOrphans},
		{"a deleted namespace takes its contents with it", checkNamespaceDeleted},
		{"a Lease is held by a component, and renewed", checkLease},
	})
}
