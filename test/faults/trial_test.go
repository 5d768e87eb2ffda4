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

package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testcluster"
	"example.com/sample-controller/test/faults/proxy"

	typedfoo "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// trial is one controller in a namespace of its own.
type trial struct {
	subject *subject
	cluster *testCluster
	ns      string
	folder  string
	// patience bounds each wait.
	patience time.Duration
	// replicas are the controllers, each behind a proxy of its own; most trials have one.
	replicas []*replica
	// others are objects that the controller must leave as they are.
	others []other
	// uncollected are Deployments whose owner is gone and which nobody collects.
	uncollected map[string]bool
	// refused are Foos whose Deployment can't be made, or not as they ask for it,
	// with the reason that their condition has to give.
	refused map[string]string
	// overruled are Deployments that an admission policy makes otherwise than their
	// Foos ask for, with the number of Pods that it leaves them; 0 if it is about
	// something else.
	overruled map[string]int32
	// mute tells that nobody can write a status as it should be.
	mute bool
	// told is the record of what the Foos say.
	told record
}

// replica is a controller's process and its way to the API server.
type replica struct {
	proxy      *proxy.Proxy
	process    *process
	kubeconfig string
}

// newTrial makes the namespace. It is deleted when the test ends.
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
		t.Fatalf("Making a namespace: %v", err)
	}
	tr := &trial{
		subject: s, cluster: c, ns: created.Name, folder: t.TempDir(), patience: patience,
		uncollected: map[string]bool{}, refused: map[string]string{}, overruled: map[string]int32{},
	}
	t.Cleanup(func() {
		tr.close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// The cluster goes with the run; what is left in it then is no harm.
		_ = c.kube.CoreV1().Namespaces().Delete(ctx, tr.ns, metav1.DeleteOptions{})
	})
	if err := tr.record(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr
}

// startBare starts a controller whose account the admission policy is not
// about. Where a controller would harm others that is the second line of
// defence, and what is looked at is the first.
func (tr *trial) startBare(flags ...string) (*replica, error) {
	return tr.startAs(tr.cluster.bare, flags...)
}

// start starts a controller with the account that fits it, and more flags.
func (tr *trial) start(flags ...string) (*replica, error) {
	account := tr.cluster.account
	if !tr.subject.namespaced {
		account = tr.cluster.bare
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

// prepare makes a controller ready to be started.
func (tr *trial) prepare(account *rest.Config, flags ...string) (*replica, error) {
	confine, args := tr.ns, tr.subject.flags
	if tr.subject.namespaced {
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

// writeKubeconfig writes a kubeconfig that leads through the proxy.
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

// calls returns what all controllers have asked for.
func (tr *trial) calls() []proxy.Call {
	var all []proxy.Call
	for _, r := range tr.replicas {
		all = append(all, r.proxy.Calls()...)
	}
	return all
}

// story is what the controllers asked for, and the end of what they printed. Of
// what is long ago it has the watches, and what was broken.
func (tr *trial) story() string {
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

var errPatience = errors.New("not within the time that it may take")

// errNotRolledOut says that a Deployment is as it was asked for, and the cluster has yet to make its Pods.
var errNotRolledOut = errors.New("not rolled out")

// await waits until what is asked for is so: until check has no objection. Where the cluster is what takes long, as on a
// machine that is busy with something else, it waits rolloutPatience: no controller is to be blamed for that.
func (tr *trial) await(ctx context.Context, what string, check func(context.Context) error) error {
	err := testcluster.Await(ctx, tr.patience, what, check)
	if ctx.Err() == nil && errors.Is(err, errNotRolledOut) {
		err = testcluster.Await(ctx, rolloutPatience, what, check)
	}
	return err
}
