// SPDX-License-Identifier: Apache-2.0

// Package cluster starts a control plane for one measurement, counts the calls of the
// measured program, and sees when Foos have converged.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/test/testcluster"
)

const (
	startTimeout = 2 * time.Minute

	// The account of the measured program lets the API server tell its requests from all
	// others, and gives them the priority of any workload.
	accountNamespace = "contender"
	accountName      = "contender"
	// User is the account's user name.
	User = "system:serviceaccount:" + accountNamespace + ":" + accountName

	fooCRD = "customresourcedefinition/foos.samplecontroller.k8s.io"
	// oldConditions are the conditions that the API server writes, with an old transition
	// time.
	oldConditions = `{"status":{"conditions":[
{"type":"NamesAccepted","status":"True","reason":"NoConflicts","message":"no conflicts found","lastTransitionTime":"2000-01-01T00:00:00Z"},
{"type":"Established","status":"True","reason":"InitialNamesAccepted","message":"the initial names have been accepted","lastTransitionTime":"2000-01-01T00:00:00Z"}]}}`
)

// Options describe the cluster to start.
type Options struct {
	// Program is the path of the devcluster binary, Repository that of this repository.
	Program, Repository string
	// Whole also starts kube-controller-manager, kube-scheduler and KWOK.
	Whole bool
	// Namespaces are created.
	Namespaces []string
}

// Cluster is a running control plane.
type Cluster struct {
	// Kube and Foos are the benchmark's own clients, with the administrator's permissions
	// and without rate limits.
	Kube kubernetes.Interface
	Foos clientset.Interface
	// ContenderKubeconfig is the path of the measured account's kubeconfig.
	ContenderKubeconfig string

	*testcluster.Cluster
	options Options
	dir     string
}

// Start starts a cluster with the CRD of Foo and the account of the measured program.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "foo-bench-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, dir: dir}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster in %s: %w", dir, err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	flag := testcluster.ControlPlaneOnly
	if c.options.Whole {
		flag = "-audit-bodies=foos.samplecontroller.k8s.io" // for Convergence
	}
	if c.Cluster, err = testcluster.StartCluster(ctx, c.options.Program, c.path("data"), flag); err != nil {
		return err
	}
	config, err := testcluster.LoadConfig(c.Kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "foo-bench"
	if c.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if c.Foos, err = clientset.NewForConfig(config); err != nil {
		return err
	}
	return errors.Join(c.installFoo(ctx), c.createNamespaces(ctx), c.createAccount(ctx), c.countFlows(ctx))
}

// installFoo installs the CustomResourceDefinition and waits until it is served. The API
// server delays each creation of a Foo while the CRD has been established for less than a
// few seconds, so its conditions get an older transition time.
func (c *Cluster) installFoo(ctx context.Context) error {
	err := testcluster.InstallCRDs(ctx, c.options.Program, c.Kubeconfig, c.options.Repository)
	if err == nil {
		_, err = testcluster.Kubectl(ctx, c.options.Program, c.Kubeconfig, "patch", fooCRD, "--subresource=status", "--type=merge", "--patch", oldConditions)
	}
	return err
}

func (c *Cluster) createNamespaces(ctx context.Context) error {
	for _, name := range append([]string{accountNamespace}, c.options.Namespaces...) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	return nil
}

// createAccount creates the service account, with all permissions, and its kubeconfig.
func (c *Cluster) createAccount(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: accountName}}
	_, errAccount := c.Kube.CoreV1().ServiceAccounts(accountNamespace).Create(ctx, account, metav1.CreateOptions{})
	_, errBinding := c.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: accountName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: accountName}},
	}, metav1.CreateOptions{})
	if err := errors.Join(errAccount, errBinding); err != nil {
		return fmt.Errorf("creating the account of the measured program: %w", err)
	}
	c.ContenderKubeconfig = c.path("contender.kubeconfig")
	return testcluster.WriteTokenKubeconfig(ctx, c.Kube, c.Kubeconfig, c.ContenderKubeconfig, accountNamespace, accountName)
}

// Stop stops the cluster and removes its data.
func (c *Cluster) Stop() error {
	if c.Cluster != nil {
		_ = c.Cluster.Stop() // Running reports whether it ended by itself.
	}
	return os.RemoveAll(c.dir)
}

// Running returns an error if the cluster has ended by itself.
func (c *Cluster) Running() error {
	if c.HasEnded() {
		return errors.New("the cluster ended by itself: see the logs of devcluster")
	}
	return nil
}

// LogOf returns the path of the file for the output of a program.
func (c *Cluster) LogOf(program string) string { return c.path(program + ".log") }

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// readInterval is the time between two readings of the audit log. It does not affect the
// times of convergence, which are in the log.
const readInterval = 50 * time.Millisecond

// lacks is what a Foo needs to have converged.
type lacks struct{ deployment, status, available bool }

// Convergence waits for Foos to converge.
//
// Without kube-controller-manager a Foo has converged when the measured program has created
// a Deployment with the name that the Foo asks for, and has written the Foo's status. With
// kube-controller-manager it has converged when its status reports that its Pods are
// available.
type Convergence struct {
	log *audit.Log
	// open holds the Foos that have not converged, by namespace and name. The Foos ask for
	// Deployments of their own names.
	open  map[string]lacks
	times []time.Time
}

// Watch starts to watch for the convergence of Foos that have been created.
func (c *Cluster) Watch(foos ...*samplev1alpha1.Foo) (*Convergence, error) {
	log, err := audit.OpenAtEnd(c.AuditLog())
	if err != nil {
		return nil, err
	}
	open := map[string]lacks{}
	for _, foo := range foos {
		whole := c.options.Whole
		open[foo.Namespace+"/"+foo.Name] = lacks{deployment: !whole, status: !whole, available: whole}
	}
	return &Convergence{log: log, open: open}, nil
}

// Wait returns when all Foos have converged, with the times in ascending order. It returns
// an error when ctx or the measured program ends.
func (c *Convergence) Wait(ctx context.Context, ended <-chan struct{}) ([]time.Time, error) {
	ticker := time.NewTicker(readInterval)
	defer ticker.Stop()
	for {
		writes, err := c.log.Next()
		if err != nil {
			return nil, err
		}
		c.read(writes)
		if len(c.open) == 0 {
			slices.SortFunc(c.times, time.Time.Compare)
			return c.times, nil
		}
		select {
		case <-ticker.C:
		case <-ended:
			return nil, errors.New("the program ended before all Foos had converged")
		case <-ctx.Done():
			return nil, fmt.Errorf("%d Foos have converged, %d have not: %w", len(c.times), len(c.open), context.Cause(ctx))
		}
	}
}

func (c *Convergence) read(writes []audit.Write) {
	for _, write := range writes {
		key := write.Namespace + "/" + write.Name
		left, isOpen := c.open[key]
		if !isOpen || write.User != User || !write.OK() {
			continue
		}
		switch write.Verb + " " + write.Path() {
		case "create deployments":
			left.deployment = false
		case "update foos/status", "patch foos/status":
			left.status = false
			left.available = left.available && !isAvailable(write.Response)
		}
		c.open[key] = left
		if left == (lacks{}) {
			delete(c.open, key)
			c.times = append(c.times, write.Done)
		}
	}
}

// isAvailable reports whether a Foo's status says that its Pod is available.
func isAvailable(foo *audit.Object) bool {
	return foo != nil && foo.Status.AvailableReplicas != nil && *foo.Status.AvailableReplicas == 1
}
