// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"testing"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// TestViewIsEnough runs the commands as a user who has only the role view in a namespace, with the
// rules about Foos that artifacts/deploy adds to that role.
func TestViewIsEnough(t *testing.T) {
	startController(t)
	ns := newNamespace(t, "viewers")
	ns.withReadyFoo()
	ns.kubectl("apply", "-f", "../../../artifacts/deploy/permissions/users.yaml")
	ns.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	footest.Must(t, testcluster.Await(t.Context(), limit, "the role is in force", func(context.Context) error {
		return ns.foo("plan", "--as=viewer").check(0, "Nothing to do: 1 Foo is in its desired state.")
	}))
	ns.kubectl("create", "role", "reader", "--verb=list", "--resource=foos.samplecontroller.k8s.io,deployments.apps")
	ns.kubectl("create", "rolebinding", "reader", "--role=reader", "--user=reader")
	ns.kubectl("create", "role", "half", "--verb=list", "--resource=deployments.apps")
	ns.kubectl("create", "rolebinding", "half", "--role=half", "--user=half")
	for _, err := range []error{
		ns.foo("why", "a", "--as=reader").check(0, "ready: Deployment", "Not shown: the permission to list pods is missing"),
		ns.foo("why", "a", "--as=viewer").check(0, "ready: Deployment", "Pod web-", "Controller: unknown: the Lease",
			"the permission to get leases.coordination.k8s.io is missing"),
		ns.foo("plan", "-A", "--as=viewer").check(2, "the permission to list foos.samplecontroller.k8s.io is missing"),
		ns.foo("ui", "--as=half").check(2, "the permission to list foos.samplecontroller.k8s.io is missing"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}
