// SPDX-License-Identifier: Apache-2.0

// Rows that need a control plane of their own, because they kill or freeze its
// components, restore its store or change the CustomResourceDefinition.

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

// controlPlaneScenario is a scenario that needs a control plane of its own.
type controlPlaneScenario struct {
	scenario
	name string
	run  func(ctx context.Context, tr *trial, p *controlPlane) error
}

func controlPlaneScenarios() []controlPlaneScenario {
	server := scenario{row: "D5", title: "the API server is killed and restarted, with cold caches"}
	store := scenario{row: "D6", title: "etcd is killed, or frozen"}
	return []controlPlaneScenario{
		{server, "killed before a write", duringScale(func(ctx context.Context, tr *trial, p *controlPlane) proxy.Fault {
			return proxy.Before("API server killed", func() { tr.restart(ctx, p, apiServer) })
		})},
		{server, "killed after a write", duringScale(func(ctx context.Context, tr *trial, p *controlPlane) proxy.Fault {
			return proxy.After("API server killed", func() { tr.restart(ctx, p, apiServer) })
		})},
		{store, "killed before a write", duringScale(func(ctx context.Context, tr *trial, p *controlPlane) proxy.Fault {
			return proxy.Before("etcd killed", func() { tr.restart(ctx, p, etcd) })
		})},
		{store, "frozen during a write", frozenEtcd},
		{scenario{row: "B4", title: "a Foo is deleted and created again while no garbage collector runs"}, "controller manager killed", withoutGarbageCollector},
		{scenario{row: "B8", quick: 1, title: "a connection and its watches go dead without notice"}, "silent", deadConnection},
		{scenario{row: "C12", quick: 1, title: "the CRD is deleted and created again"}, "while running", recreatedCRD},
		{scenario{row: "F1", title: "a Foo with an invalid Deployment name was stored before the CRD had its validation rules"}, "beside a valid one", storedBeforeValidation},
		{scenario{row: "G6", quick: 1, title: "the CRD prunes the conditions"}, "no conditions", withoutConditions().run},
		{scenario{row: "G6", quick: 1, title: "the CRD has no status subresource", why: "the 404 is treated like any other error, and retried"}, "no subresource", withoutStatusSubresource().run},
		{scenario{row: "D7", title: "etcd is restored from a backup, so resourceVersions go back",
			why: "the informers continue their watches at versions that the store has not reached, and get no events until it has"}, "restored", restoredEtcd},
		{scenario{row: "C12", title: "the first Foo right after the CRD is installed: its Deployment is created about as soon as the API server allows"}, "fresh installation", freshInstallation},
		{scenario{row: "F6", title: "two Foos lose hundreds of Deployments: another namespace does not wait", oursOnly: noCleanup}, "obsolete Deployments", obsoleteInHundreds},
		{scenario{row: "F6", title: "calls for one namespace hang: another namespace waits neither for a Deployment nor for an Event",
			why: "as D4"}, "slow calls", slowTenant},
	}
}

// TestControlPlane runs the rows that break the control plane, one after the other.
func TestControlPlane(t *testing.T) {
	for _, s := range []*subject{run.ours, run.upstream} {
		if s == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := newControlPlane(t)
			for _, sc := range controlPlaneScenarios() {
				t.Run(sc.row+"/"+sc.name, func(t *testing.T) {
					sc.skipFor(t, s)
					sc.skipUnlessQuick(t)
					if err := p.awaitReady(t.Context()); err != nil {
						t.Fatal(err) // left behind by the scenario before
					}
					sc.tryCaseOn(t, p.testCluster, s, func(ctx context.Context, tr *trial) error { return sc.run(ctx, tr, p) })
				})
			}
		})
	}
}

// restart kills a component of the control plane and starts it again. It is called during
// the controller's only write, so that no status changes between the old recording and
// the new.
func (tr *trial) restart(ctx context.Context, p *controlPlane, name string) {
	_ = tr.withoutRecording(ctx, func() error { // the trial fails if the component does not start
		p.kill(name)
		return p.start(ctx, name)
	})
}

// duringScale injects a fault when the controller scales a Deployment.
func duringScale(newFault func(context.Context, *trial, *controlPlane) proxy.Fault) func(context.Context, *trial, *controlPlane) error {
	return func(ctx context.Context, tr *trial, p *controlPlane) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
			return err
		}
		fault, scaled := newFault(ctx, tr, p), make(chan struct{})
		r.proxy.Use(once(func(call *proxy.Call) proxy.Fault {
			if !isUpdateAttempt(call) {
				return nil
			}
			return func(x *proxy.Exchange) {
				<-scaled // the request that scales the Foo has been answered
				fault(x)
			}
		}))
		err = tr.scaleFoo(ctx, "a", 3)
		close(scaled)
		return errors.Join(err, tr.stableAndQuiet(ctx))
	}
}

// frozenEtcd is D6: etcd is frozen during a write.
func frozenEtcd(ctx context.Context, tr *trial, p *controlPlane) error {
	thaw := func() { p.signal(etcd, syscall.SIGCONT) }
	defer thaw()
	return duringScale(func(ctx context.Context, _ *trial, p *controlPlane) proxy.Fault {
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

// withoutGarbageCollector is B4, and B3 without a made-up owner: nothing deletes what a
// deleted Foo leaves behind.
func withoutGarbageCollector(ctx context.Context, tr *trial, p *controlPlane) error {
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
	if err := errors.Join(err, lookErr, p.deleteLeases(ctx), p.start(ctx, controllerManager)); err != nil {
		return err
	}
	if now.UID != old.UID || now.Generation != old.Generation {
		return errors.New("it changed the Deployment of a deleted Foo")
	}
	return tr.stableAndQuiet(ctx)
}

// lostChanges is the least number of versions that a restore goes back: more than the
// cluster makes again while the trial is judged.
const lostChanges = 1000

// restoredEtcd is D7. All other components are restarted with etcd, as the procedure for
// a restore says; the controller keeps running. The API server answers watches with 429
// while it fills its caches. The proxy does so a little longer, so that every watch is
// continued at an old version and none is begun without one by chance.
func restoredEtcd(ctx context.Context, tr *trial, p *controlPlane) error {
	r, err := tr.start("-v=4")
	if err != nil {
		return err
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.createFoo(ctx, "b", "b", 1), tr.settled(ctx)); err != nil {
		return err
	}
	backup := filepath.Join(p.data, "backup")
	live := filepath.Join(p.data, "etcd")
	err = tr.withoutRecording(ctx, func() error {
		p.kill(apiServer, etcd)
		return errors.Join(os.CopyFS(backup, os.DirFS(live)), p.start(ctx, etcd, apiServer))
	})
	if err != nil {
		return err
	}
	if err := errors.Join(tr.scaleFoo(ctx, "a", 3), tr.scaleFoo(ctx, "b", 2), tr.createFoo(ctx, "c", "c", 1), tr.settled(ctx), tr.makeChanges(ctx, lostChanges)); err != nil {
		return err
	}
	warm := r.proxy.Use(func(call *proxy.Call) proxy.Fault {
		if call.Watch {
			return proxy.TooMany
		}
		return nil
	})
	err = tr.withoutRecording(ctx, func() error {
		p.kill(nodes, scheduler, controllerManager, apiServer, etcd)
		return errors.Join(os.RemoveAll(live), os.Rename(backup, live), p.start(ctx, allComponents()...))
	})
	if err != nil {
		return err
	}
	warm()
	if err := tr.stableAndQuiet(ctx); err != nil {
		return fmt.Errorf("after the restore: %w", err)
	}
	err = errors.Join(tr.scaleFoo(ctx, "a", 2), tr.createFoo(ctx, "d", "d", 1), tr.stableAndQuiet(ctx))
	if writes := r.proxy.Writes(); writes > maxWritesAfterRestore {
		err = errors.Join(err, fmt.Errorf("it made %d writes for four Foos", writes))
	}
	return err
}

// maxWritesAfterRestore is more than a controller needs to converge after the restore.
const maxWritesAfterRestore = 200

// makeChanges makes a number of changes in the cluster.
func (tr *trial) makeChanges(ctx context.Context, changes int) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "age"}}
	maps := tr.cluster.kube.CoreV1().ConfigMaps(tr.ns)
	config, err := maps.Create(ctx, config, metav1.CreateOptions{})
	for i := 0; i < changes && err == nil; i++ {
		config.Data = map[string]string{"age": strconv.Itoa(i)}
		config, err = maps.Update(ctx, config, metav1.UpdateOptions{})
	}
	return err
}

// deadConnection is B8: nothing sent over the open connections arrives any more.
// client-go pings a connection that is silent for 30 s, and closes it after 15 s more.
func deadConnection(ctx context.Context, tr *trial, p *controlPlane) error {
	tr.timeout = 2 * waitTimeout
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
	// By default, client-go takes 45 s to notice.
	r.process.env = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=2", "HTTP2_PING_TIMEOUT_SECONDS=2"}
	if err := errors.Join(r.process.start(), tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
		return err
	}
	between.silence()
	return errors.Join(tr.scaleFoo(ctx, "a", 3), tr.stableAndQuiet(ctx))
}

// prepareDirect prepares a controller that does not connect through a proxy. Its writes
// show in the objects only.
func (tr *trial) prepareDirect(server string) (*replica, error) {
	account := tr.cluster.account
	if !tr.subject.namespaced {
		account = tr.cluster.exempt
	}
	r, err := tr.prepare(account)
	if err != nil {
		return nil, err
	}
	return r, testcluster.WriteKubeconfig(r.kubeconfig, server, account.CAData, clientcmdapi.AuthInfo{Token: account.BearerToken})
}
