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
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testcluster"
	"example.com/sample-controller/test/faults/proxy"
)

// planeScenario is a scenario that needs a control plane of its own.
type planeScenario struct {
	scenario
	name string
	run  func(ctx context.Context, tr *trial, p *plane) error
}

func planeScenarios() []planeScenario {
	server := scenario{row: "D5", title: "the API server is killed and comes back with cold caches"}
	store := scenario{row: "D6", title: "etcd is killed, or stands still"}
	return []planeScenario{
		{server, "before a write", inWrite(func(ctx context.Context, tr *trial, p *plane) proxy.Fault {
			return proxy.Before("API server killed", func() { tr.restart(ctx, p, apiServer) })
		})},
		{server, "after a write", inWrite(func(ctx context.Context, tr *trial, p *plane) proxy.Fault {
			return proxy.After("API server killed", func() { tr.restart(ctx, p, apiServer) })
		})},
		{store, "killed before a write", inWrite(func(ctx context.Context, tr *trial, p *plane) proxy.Fault {
			return proxy.Before("etcd killed", func() { tr.restart(ctx, p, etcd) })
		})},
		{store, "frozen in a write", frozenStore},
		{scenario{row: "B4", title: "no garbage collector while a Foo is deleted and made again"}, "killed", noCollector},
		{scenario{row: "B8", title: "a connection with its watches is dead, and nobody says so"}, "silent", deadConnection},
		{scenario{row: "C12", title: "the CustomResourceDefinition is deleted and made again"}, "while running", newDefinition},
		{scenario{row: "F1", title: "a Foo that no Deployment can be made of was stored before the definition had its rules"}, "and a good one", storedBefore},
		{scenario{row: "G6", title: "the definition prunes what the program says"}, "conditions", prunes().run},
		{scenario{row: "G6", title: "the definition has no status subresource", why: "the 404 is an error like any other, and tried again"}, "none", speechless().run},
		{scenario{row: "D7", title: "etcd is restored from a backup: resourceVersions go back",
			why: "the informers continue their watches at versions that the store has not reached, and are deaf until it has"}, "restored", restored},
	}
}

// TestControlPlane kills parts of a control plane, one after the other.
func TestControlPlane(t *testing.T) {
	if !run.all {
		t.Skip("not in the quick part")
	}
	for _, s := range []*subject{run.ours, run.upstream} {
		if s == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			for _, sc := range planeScenarios() {
				t.Run(sc.row+"/"+sc.name, func(t *testing.T) {
					if err := p.awaitServed(t.Context()); err != nil {
						t.Fatal(err) // what the one before has left
					}
					sc.tryCaseOn(t, p.testCluster, s, func(ctx context.Context, tr *trial) error { return sc.run(ctx, tr, p) })
				})
			}
		})
	}
}

// restart kills a part of the control plane and starts it again. The write that
// it is done in is the controller's only one, so that nothing is said between
// the old record and the new.
func (tr *trial) restart(ctx context.Context, p *plane, name string) {
	_ = tr.unrecorded(ctx, func() error { // what does not come back is seen by the trial
		p.kill(name)
		return p.start(ctx, name)
	})
}

// inWrite breaks something when a controller scales a Deployment.
func inWrite(breakIt func(context.Context, *trial, *plane) proxy.Fault) func(context.Context, *trial, *plane) error {
	return func(ctx context.Context, tr *trial, p *plane) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
			return err
		}
		fault, asked := breakIt(ctx, tr, p), make(chan struct{})
		r.proxy.Use(once(func(call *proxy.Call) proxy.Fault {
			if call.Method != http.MethodPut || call.Resource != "deployments" {
				return nil
			}
			return func(x *proxy.Exchange) {
				<-asked // whoever scales the Foo has had an answer
				fault(x)
			}
		}))
		err = tr.scaleFoo(ctx, "a", 3)
		close(asked)
		return errors.Join(err, tr.stableAndQuiet(ctx))
	}
}

// frozenStore is D6: etcd stands still with a write under way.
func frozenStore(ctx context.Context, tr *trial, p *plane) error {
	thaw := func() { p.signal(etcd, syscall.SIGCONT) }
	defer thaw()
	return inWrite(func(ctx context.Context, _ *trial, p *plane) proxy.Fault {
		return func(x *proxy.Exchange) {
			p.signal(etcd, syscall.SIGSTOP)
			go func() {
				pause(ctx, 3*quiet)
				thaw()
			}()
			proxy.LoseReply(x)
		}
	})(ctx, tr, p)
}

// noCollector is B3 and B4 without tricks: nobody collects what a deleted Foo
// leaves behind.
func noCollector(ctx context.Context, tr *trial, p *plane) error {
	if _, err := tr.start(); err != nil {
		return err
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
		return err
	}
	old, err := tr.deployments().Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	p.kill(controllerManager)
	err = errors.Join(tr.deleteFoo(ctx, "a", metav1.DeletePropagationBackground), tr.createFoo(ctx, "a", "a", 3))
	pause(ctx, 2*quiet)
	now, lookErr := tr.deployments().Get(ctx, "a", metav1.GetOptions{})
	if err := errors.Join(err, lookErr, p.forgetLeases(ctx), p.start(ctx, controllerManager)); err != nil {
		return err
	}
	if now.UID != old.UID || now.Generation != old.Generation {
		return errors.New("it changed the Deployment of a Foo that is gone")
	}
	return tr.stableAndQuiet(ctx)
}

// lostWrites is how many versions a restore goes back, at least: more than the
// cluster makes again while a trial is judged.
const lostWrites = 1000

// restored is D7. Whoever restores etcd restarts the rest of the control plane;
// the controller goes on as it is. As long as the API server fills its caches it
// answers watches with 429, and here for a little longer: so each watch is
// continued, and none is begun anew by chance.
func restored(ctx context.Context, tr *trial, p *plane) error {
	r, err := tr.start("-v=4")
	if err != nil {
		return err
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.createFoo(ctx, "b", "b", 1), tr.settled(ctx)); err != nil {
		return err
	}
	backup := filepath.Join(p.data, "backup")
	live := filepath.Join(p.data, "etcd")
	err = tr.unrecorded(ctx, func() error {
		p.kill(apiServer, etcd)
		return errors.Join(os.CopyFS(backup, os.DirFS(live)), p.start(ctx, etcd, apiServer))
	})
	if err != nil {
		return err
	}
	if err := errors.Join(tr.scaleFoo(ctx, "a", 3), tr.scaleFoo(ctx, "b", 2), tr.createFoo(ctx, "c", "c", 1), tr.settled(ctx), tr.age(ctx, lostWrites)); err != nil {
		return err
	}
	warm := r.proxy.Use(func(call *proxy.Call) proxy.Fault {
		if call.Watch {
			return proxy.TooMany
		}
		return nil
	})
	err = tr.unrecorded(ctx, func() error {
		p.kill(nodes, scheduler, controllerManager, apiServer, etcd)
		return errors.Join(os.RemoveAll(live), os.Rename(backup, live), p.start(ctx, allParts()...))
	})
	if err != nil {
		return err
	}
	warm()
	if err := tr.stableAndQuiet(ctx); err != nil {
		return fmt.Errorf("after the restore: %w", err)
	}
	err = errors.Join(tr.scaleFoo(ctx, "a", 2), tr.createFoo(ctx, "d", "d", 1), tr.stableAndQuiet(ctx))
	if writes := r.proxy.Writes(); writes > manyLostWrites {
		err = errors.Join(err, fmt.Errorf("it made %d writes for four Foos", writes))
	}
	return err
}

// manyLostWrites is more than a controller needs that finds the world changed.
const manyLostWrites = 200

// age has the cluster make so many changes.
func (tr *trial) age(ctx context.Context, changes int) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "age"}}
	maps := tr.cluster.kube.CoreV1().ConfigMaps(tr.ns)
	config, err := maps.Create(ctx, config, metav1.CreateOptions{})
	for i := 0; i < changes && err == nil; i++ {
		config.Data = map[string]string{"age": strconv.Itoa(i)}
		config, err = maps.Update(ctx, config, metav1.UpdateOptions{})
	}
	return err
}

// deadConnection is B8: no byte of the connections that there are arrives any
// more. client-go sends a ping over one that is silent for 30 s, and gives it up
// after 15 more.
func deadConnection(ctx context.Context, tr *trial, p *plane) error {
	tr.patience = 2 * patience
	host, err := url.Parse(p.config.Host)
	if err != nil {
		return err
	}
	between, err := newRelay(ctx, host.Host)
	if err != nil {
		return err
	}
	defer between.close()
	r, err := tr.prepareDirect("https://" + between.listener.Addr().String())
	if err != nil {
		return err
	}
	if err := errors.Join(r.process.start(), tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
		return err
	}
	between.silence()
	return errors.Join(tr.scaleFoo(ctx, "a", 3), tr.stableAndQuiet(ctx))
}

// prepareDirect makes a controller ready that does not go through a proxy. What
// it writes is then seen by the objects alone.
func (tr *trial) prepareDirect(server string) (*replica, error) {
	account := tr.cluster.account
	if !tr.subject.namespaced {
		account = tr.cluster.bare
	}
	r, err := tr.prepare(account)
	if err != nil {
		return nil, err
	}
	return r, testcluster.WriteKubeconfig(r.kubeconfig, server, account.CAData, clientcmdapi.AuthInfo{Token: account.BearerToken})
}
