// SPDX-License-Identifier: Apache-2.0

// The development cluster that the demo runs in.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The files that the demo needs, relative to the root of the checkout.
const (
	devclusterPath  = "bin/devcluster"
	controllerPath  = "bin/sample-controller"
	crdPath         = "artifacts/crd"
	permissionsPath = "artifacts/deploy/permissions"
	examplePath     = "artifacts/examples/example-foo.yaml"
	// exampleFoo is the name of the Foo in examplePath.
	exampleFoo = "example-foo"
)

// picturePath is the default of -picture.
const picturePath = "_output/timeline.svg"

// inClusterCommand is the first argument of the program in a cluster; the second is the
// data folder.
const inClusterCommand = "in-cluster"

const caption = `A Foo becomes a Pod on a Kubernetes control plane of your own: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler are the real ones. KWOK plays the kubelet of its
node: Pods become Ready, but no image is pulled and nothing is executed.

`

// becomeCluster replaces this process with devcluster, which starts a cluster, runs this
// program in it, and ends both together: if either exits, for whatever reason, no process
// is left and the data is removed.
func becomeCluster(args []string) error {
	if err := checkCheckout(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the path of this program: %w", err)
	}
	devcluster, err := filepath.Abs(devclusterPath)
	if err != nil {
		return err
	}
	resources, err := narratedResources()
	if err != nil {
		return err
	}
	dataDir, err := os.MkdirTemp("", "foo-demo-")
	if err != nil {
		return err
	}
	fmt.Print(caption)
	err = syscall.Exec(devcluster, clusterCommand(devcluster, self, dataDir, resources, args), os.Environ())
	return fmt.Errorf("running %s: %w", devcluster, errors.Join(err, os.Remove(dataDir)))
}

// clusterCommand returns the command line that runs this program in a cluster, with the
// same flags. The audit log has the bodies of writes to the resources.
func clusterCommand(devcluster, self, dataDir string, resources, args []string) []string {
	command := []string{devcluster, "run", "-data-dir", dataDir, "-audit-bodies", strings.Join(resources, ","), "--", self, inClusterCommand, dataDir}
	return append(command, args...)
}

func checkCheckout() error {
	for _, path := range []string{devclusterPath, controllerPath, crdPath, permissionsPath, examplePath} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w: run make demo in the root of the checkout", err)
		}
	}
	return nil
}
