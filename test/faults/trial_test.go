// SPDX-License-Identifier: Apache-2.0

// A trial: one controller or more in a namespace, each behind a proxy; what users do in
// it, and its waits.

package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	typedfoo "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

// trial is a namespace with the controllers under test, usually one.
type trial struct {
	subject *subject
	cluster *testCluster
	ns      string
	// everywhere is true if the controllers work in all namespaces, and not only in ns. It
	// needs a control plane of its own.
	everywhere bool
	folder     string
	// timeout bounds each wait.
	timeout time.Duration
	// replicas are the controllers, each behind a proxy of its own.
	replicas []*replica
	// protected are objects that the controller must leave as they are.
	protected []protected
	// uncollected are Deployments whose owner is gone and which the garbage collector
	// ignores.
	uncollected map[string]bool
	// refused maps each Foo whose Deployment can't be written as the Foo asks to the
	// reason that its condition must have.
	refused map[string]string
	// mutated holds the Deployments that an admission policy changes, with the number of
	// replicas that the policy leaves, or 0 if it changes something else.
	mutated map[string]int32
	// statusUnwritable is true if the API server stores no correct status.
	statusUnwritable bool
	// statuses records the statuses of the Foos.
	statuses statusRecord
}

// replica is a controller's process and its way to the API server.
type replica struct {
	proxy      *proxy.Proxy
	process    *process
	kubeconfig string
}

// newTrial creates the namespace, which is deleted when the test ends.
func newTrial(t *testing.T, s *subject) *trial {
	t.Helper()
	return newTrialOn(t, run.cluster, s)
}

func newTrialOn(t *testing.T, c *testCluster, s *subject) *trial {
	t.Helper()
	created, err := c.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("Creating a namespace: %v", err)
	}
	tr := &trial{
		subject: s, cluster: c, ns: created.Name, folder: t.TempDir(), timeout: waitTimeout,
		uncollected: map[string]bool{}, refused: map[string]string{}, mutated: map[string]int32{},
	}
	t.Cleanup(func() {
		tr.close()
		ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
		defer cancel()
		// The cluster is deleted with the run, so a leftover namespace does no harm.
		_ = c.kube.CoreV1().Namespaces().Delete(ctx, tr.ns, metav1.DeleteOptions{})
	})
	if err := tr.startRecording(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr
}

// startExempt starts a controller with the account to which the admission policy does not
// apply. Where the policy would be a second line of defence, these trials test the first.
func (tr *trial) startExempt(flags ...string) (*replica, error) {
	return tr.startAs(tr.cluster.exempt, flags...)
}

// start starts a controller with the account that fits it, and more flags.
func (tr *trial) start(flags ...string) (*replica, error) {
	account := tr.cluster.account
	if !tr.subject.namespaced {
		account = tr.cluster.exempt
	}
	return tr.startAs(account, flags...)
}

func (tr *trial) startAs(account *rest.Config, flags ...string) (*replica, error) {
	r, err := tr.prepare(account, flags...)
	if err != nil {
		return nil, err
	}
	return r, r.process.start()
}

// prepare prepares a controller without starting it.
func (tr *trial) prepare(account *rest.Config, flags ...string) (*replica, error) {
	confine, args := tr.ns, tr.subject.flags
	switch {
	case tr.everywhere:
		confine = ""
	case tr.subject.namespaced:
		confine, args = "", append(slices.Clip(args), "-namespace="+tr.ns)
	}
	p, err := proxy.New(account, confine)
	if err != nil {
		return nil, err
	}
	r := &replica{proxy: p, kubeconfig: filepath.Join(tr.folder, fmt.Sprintf("kubeconfig-%d", len(tr.replicas)))}
	args = append(append(slices.Clip(args), "-kubeconfig="+r.kubeconfig), flags...)
	r.process = &process{path: tr.subject.path, args: args}
	tr.replicas = append(tr.replicas, r)
	return r, r.writeKubeconfig(clientcmdapi.AuthInfo{})
}

// writeKubeconfig writes a kubeconfig for the connection through the proxy.
func (r *replica) writeKubeconfig(user clientcmdapi.AuthInfo) error {
	return testcluster.WriteKubeconfig(r.kubeconfig, r.proxy.URL, r.proxy.Certificate(), user)
}

func (tr *trial) close() {
	for _, r := range tr.replicas {
		r.process.close()
		r.proxy.Close()
	}
	tr.stopRecording()
}

func (tr *trial) foosClient() typedfoo.FooInterface {
	return tr.cluster.foos.SamplecontrollerV1alpha1().Foos(tr.ns)
}

func (tr *trial) deployments() typedappsv1.DeploymentInterface {
	return tr.cluster.kube.AppsV1().Deployments(tr.ns)
}

// calls returns the requests of all controllers.
func (tr *trial) calls() []proxy.Call {
	var all []proxy.Call
	for _, r := range tr.replicas {
		all = append(all, r.proxy.Calls()...)
	}
	return all
}

// diagnostics returns the controllers' requests and the end of their logs. Of older
// requests it has only watches and those with a fault.
func (tr *trial) diagnostics() string {
	const recent = 60
	var text strings.Builder
	for i, r := range tr.replicas {
		calls := r.proxy.Calls()
		fmt.Fprintf(&text, "Requests of controller %d, %d in all:\n", i+1, len(calls))
		for n, call := range calls {
			if n >= len(calls)-recent || call.Watch || call.Fault != "" {
				fmt.Fprintf(&text, "  %s\n", call.String())
			}
		}
		fmt.Fprintf(&text, "The end of its log:\n%s\n", strings.Join(testcluster.LastLines(r.process.log.String(), 40), "\n"))
	}
	return text.String()
}

var errTimeout = errors.New("not within the timeout")

// errNotRolledOut says that a Deployment is as requested, but the cluster has not created
// all its Pods yet.
var errNotRolledOut = errors.New("not rolled out")

// await calls check until it returns nil. If only the rollout by the cluster takes long,
// as on a busy machine, it waits rolloutTimeout longer, because the controller is not at
// fault.
func (tr *trial) await(ctx context.Context, what string, check func(context.Context) error) error {
	err := testcluster.Await(ctx, tr.timeout, what, check)
	if ctx.Err() == nil && errors.Is(err, errNotRolledOut) {
		err = testcluster.Await(ctx, rolloutTimeout, what, check)
	}
	return err
}

// pause gives a controller time to do what it must not do. Use await for what it must do.
func pause(ctx context.Context, howLong time.Duration) {
	timer := time.NewTimer(howLong)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// checkNoWrites returns an error if a controller writes a Foo or a Deployment, or tries
// to, within a time.
func (tr *trial) checkNoWrites(ctx context.Context, howLong time.Duration) error {
	since := time.Now()
	pause(ctx, howLong)
	for _, call := range tr.calls() {
		if call.Began.After(since) && call.IsWork() {
			return fmt.Errorf("it must not write, and did: %s", call.Short())
		}
	}
	return ctx.Err()
}

// awaitReplicas waits until the spec of a Deployment has a number of replicas.
func (tr *trial) awaitReplicas(ctx context.Context, name string, want int32) error {
	return tr.await(ctx, fmt.Sprintf("Deployment %s asks for %d Pods", name, want), func(ctx context.Context) error {
		d, err := tr.deployments().Get(ctx, name, metav1.GetOptions{})
		if err == nil && *d.Spec.Replicas != want {
			err = fmt.Errorf("it asks for %d", *d.Spec.Replicas)
		}
		return err
	})
}

// awaitDeployment waits until a Deployment exists.
func (tr *trial) awaitDeployment(ctx context.Context, name string) error {
	return tr.await(ctx, "Deployment "+name+" exists", func(ctx context.Context) error {
		_, err := tr.deployments().Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// once returns a rule that applies to one request only.
func once(decide proxy.Rule) proxy.Rule { return times(1, decide) }

// times returns a rule that applies to a number of requests only.
func times(limit int32, decide proxy.Rule) proxy.Rule {
	var decided atomic.Int32
	return func(call *proxy.Call) proxy.Fault {
		if decided.Load() >= limit {
			return nil
		}
		fault := decide(call)
		if fault != nil && decided.Add(1) > limit {
			return nil
		}
		return fault
	}
}

func TestAwaitExtendsItsTimeoutForRolloutsOnly(t *testing.T) {
	for name, row := range map[string]struct {
		err   error
		waits bool
	}{
		"a Deployment that is not rolled out":    {fmt.Errorf("Foo a: %w", errors.Join(errNotRolledOut, errors.New("it is not ready"))), true},
		"a Deployment that differs from its Foo": {errors.New("it has 1 replica"), false},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &trial{timeout: 100 * time.Millisecond}
			began := time.Now()
			err := tr.await(t.Context(), "there is no error", func(context.Context) error {
				if time.Since(began) < 3*tr.timeout {
					return row.err
				}
				return nil
			})
			if waited := err == nil; waited != row.waits {
				t.Errorf("await returns %v", err)
			}
		})
	}
}

// createFoo creates a Foo with a Deployment name and a number of replicas.
func (tr *trial) createFoo(ctx context.Context, name, deployment string, replicas int32) error {
	_, err := tr.foosClient().Create(ctx, &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deployment, Replicas: &replicas},
	}, metav1.CreateOptions{})
	return err
}

func (tr *trial) scaleFoo(ctx context.Context, name string, replicas int32) error {
	return tr.patchFoo(ctx, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (tr *trial) renameDeployment(ctx context.Context, foo, deployment string) error {
	return tr.patchFoo(ctx, foo, fmt.Sprintf(`{"spec":{"deploymentName":%q}}`, deployment))
}

func (tr *trial) patchFoo(ctx context.Context, name, patch string) error {
	_, err := tr.foosClient().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (tr *trial) patchDeployment(ctx context.Context, name, patch string) error {
	_, err := tr.deployments().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	return err
}

// annotate adds an annotation to a Deployment as another writer. The oracle checks that
// the annotation stays.
func (tr *trial) annotate(ctx context.Context, deployment, value string) error {
	if err := tr.patchDeployment(ctx, deployment, fmt.Sprintf(`{"metadata":{"annotations":{"somebody":%q}}}`, value)); err != nil {
		return err
	}
	tr.protectAnnotation(deployment, "somebody", value)
	return nil
}

func (tr *trial) deleteFoo(ctx context.Context, name string, how metav1.DeletionPropagation) error {
	return tr.foosClient().Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &how})
}

// createForeign creates a Deployment that belongs to somebody else.
func (tr *trial) createForeign(ctx context.Context, name string, options ...func(*appsv1.Deployment)) error {
	made, err := tr.deployments().Create(ctx, newDeployment(name, options...), metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil {
		return err
	}
	tr.protect(made)
	return nil
}
