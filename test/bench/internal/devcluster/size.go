// SPDX-License-Identifier: Apache-2.0

// What the cluster's components hold: their processes, etcd's file, and the lists of all
// objects.

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// ComponentPID returns the process ID of a component, such as kube-apiserver. A component is
// a child of devcluster, whose first argument is the name.
func (c *Cluster) ComponentPID(name string) (int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, proc := range all {
		stat, errStat := proc.Stat()
		command, errCommand := proc.CmdLine()
		if errors.Join(errStat, errCommand) != nil {
			continue // it has ended since
		}
		if stat.PPID == c.ID() && slices.Index(command, name) == 1 {
			return proc.PID, nil
		}
	}
	return 0, fmt.Errorf("devcluster, process %d, has no child %q: see its logs", c.ID(), name)
}

// EtcdSize returns the size of etcd's file, and the size at which etcd stops accepting
// writes, in bytes.
func (c *Cluster) EtcdSize(ctx context.Context) (file, quota int64, err error) {
	client, err := c.Etcd()
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return 0, 0, fmt.Errorf("reading the size of etcd's file: %w", err)
	}
	return status.DbSize, status.DbSizeQuota, nil
}

// List is the list of all objects of a resource, as an informer gets it: how long it is, and
// how long the API server took to send it.
type List struct {
	Bytes int64
	Took  time.Duration
}

// Lists are those that a controller of Foos starts with.
type Lists struct {
	Foos, Deployments List
}

// ListAll lists all Foos and all Deployments from the API server's cache.
func (c *Cluster) ListAll(ctx context.Context) (lists Lists, err error) {
	if lists.Foos, err = listAll(ctx, c.Foos.SamplecontrollerV1alpha1().RESTClient(), samplev1alpha1.Resource("foos").Resource); err != nil {
		return lists, err
	}
	lists.Deployments, err = listAll(ctx, c.Kube.AppsV1().RESTClient(), appsv1.Resource("deployments").Resource)
	return lists, err
}

func listAll(ctx context.Context, client rest.Interface, resource string) (list List, err error) {
	began := time.Now()
	stream, err := client.Get().Resource(resource).Param("resourceVersion", "0").Stream(ctx)
	if err != nil {
		return list, fmt.Errorf("listing all %s: %w", resource, err)
	}
	defer stream.Close()
	if list.Bytes, err = io.Copy(io.Discard, stream); err != nil {
		return list, fmt.Errorf("reading the list of all %s: %w", resource, err)
	}
	list.Took = time.Since(began)
	return list, nil
}
