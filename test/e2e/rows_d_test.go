// SPDX-License-Identifier: Apache-2.0

// Rows D: the API server and its store: rival writers, failures, calls that hang, components of
// the control plane, tokens, permissions, what refuses a Deployment, and large objects.

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

var rowsD = []*scenario{
	{row: "D1", title: "another client writes to the Deployment",
		quick: 2, exempt: true, why: "as C14, and without a resourceVersion", cases: []trialCase{
			{name: "while the write is under way", run: func(tr *trial) {
				open := tr.holdScale(tr.startWithFoo("a", 1), proxy.Forward)
				tr.annotate("a", "mine")
				open()
			}},
			{name: "takes the owner away while the write is under way", run: func(tr *trial) {
				open := tr.holdScale(tr.startWithFoo("a", 1), proxy.Forward)
				tr.takeAway()
				open()
			}},
			{name: "unseen by the cache", run: func(tr *trial) {
				r := tr.startWithFoo("a", 1)
				release := r.proxy.HoldEvents("deployments")
				tr.annotate("a", "mine")
				tr.scaleFoo("a", 3)
				tr.awaitCall(r, isUpdate, isAnswered)
				release()
			}},
			{name: "a storm", run: storm},
		}},
	{row: "D2", title: "a write gets a 409, 429, 500, 503 or 401, or a connection reset",
		quick: 6, cases: eachWrite(
			always("409", proxy.Refuse(http.StatusConflict)), always("429", proxy.Refuse(http.StatusTooManyRequests)),
			always("500", proxy.Refuse(http.StatusInternalServerError)),
			always("503", proxy.Refuse(http.StatusServiceUnavailable)),
			always("401", proxy.Refuse(http.StatusUnauthorized)), always("reset", proxy.Cut))},
	{row: "D3", title: "all requests fail for a while (429, 500, 503, 401, cut): the process keeps running",
		quick: 2, cases: []trialCase{
			{name: "429 to all", run: func(tr *trial) { tr.outage(proxy.Refuse(http.StatusTooManyRequests)) }},
			{name: "500 to all", run: func(tr *trial) { tr.outage(proxy.Refuse(http.StatusInternalServerError)) }},
			{name: "503 to all", run: func(tr *trial) { tr.outage(proxy.Refuse(http.StatusServiceUnavailable)) }},
			{name: "401 to all", run: func(tr *trial) { tr.outage(proxy.Refuse(http.StatusUnauthorized)) }},
			{name: "connections cut", run: func(tr *trial) { tr.outage(proxy.Cut) }},
		}},
	{row: "D4", title: "hanging calls delay no other Foo",
		quick: 1, why: "calls have no timeout, and there are only two workers", cases: []trialCase{
			{name: "not done", run: func(tr *trial) { tr.hangCalls(proxy.Hang) }},
			{name: "done", run: func(tr *trial) { tr.hangCalls(proxy.Done(proxy.Hang)) }},
		}},
	{row: "D5", title: "the API server is killed and restarted with cold caches",
		breaksPlane: true, cases: []trialCase{
			{name: "killed before a write", run: func(tr *trial) { tr.restartDuringScale(testcluster.APIServer) }},
			{name: "killed after a write", run: func(tr *trial) {
				// The write is done before the API server is killed, and not answered.
				r := tr.startWithFoo("a", 1)
				release := make(chan struct{})
				r.proxy.Use(first(1, isUpdate), proxy.Done(proxy.Hold(release, proxy.Cut)))
				tr.scaleFoo("a", 3)
				tr.awaitCall(r, isUpdate, isAnswered)
				tr.restart(func() {}, testcluster.APIServer)
				close(release)
			}},
		}},
	{row: "D6", title: "etcd is killed or frozen", breaksPlane: true, cases: []trialCase{
		{name: "killed before a write", run: func(tr *trial) { tr.restartDuringScale(testcluster.Etcd) }},
		{name: "frozen during a write", run: func(tr *trial) {
			open := tr.holdScale(tr.startWithFoo("a", 1), proxy.Done(proxy.Cut))
			store := tr.plane.Process(testcluster.Etcd)
			defer func() { _ = store.Signal(syscall.SIGCONT) }()
			tr.must(store.Signal(syscall.SIGSTOP))
			open()
			tr.pause(3 * quiet)
		}},
	}},
	{row: "D7", title: "etcd is restored from a backup, so resourceVersions go back",
		breaksPlane: true, cases: one("restored", func(tr *trial) {
			// All other components are restarted with etcd, as the procedure for a restore says;
			// the controller keeps running. The API server answers watches with 429 while it fills
			// its caches. The proxy does so a little longer, so that every watch is continued at
			// an old version and none is begun without one by chance.
			backup, live := filepath.Join(tr.plane.Data, "backup"), filepath.Join(tr.plane.Data, "etcd")
			r := tr.start("-v=4")
			tr.createFoo("a", "a", 1)
			tr.settledFoo("b", "b", 1)
			tr.restart(func() { tr.must(os.CopyFS(backup, os.DirFS(live))) }, testcluster.Etcd, testcluster.APIServer)
			tr.scaleFoo("a", 3)
			tr.scaleFoo("b", 2)
			tr.settledFoo("c", "c", 1)
			for i := range lostChanges {
				patch := annotating(map[string]string{"age": strconv.Itoa(i)})
				_, err := tr.cluster.kube.CoreV1().Namespaces().Patch(tr.ctx, tr.ns, types.MergePatchType,
					[]byte(patch), metav1.PatchOptions{})
				tr.must(err)
			}
			warm := r.proxy.Use((*proxy.Call).IsWatch, proxy.Refuse(http.StatusTooManyRequests))
			tr.restart(func() {
				tr.must(os.RemoveAll(live))
				tr.must(os.Rename(backup, live))
			}, testcluster.AllComponents()...)
			warm()
			tr.phase = "after the restore"
			tr.stableAndQuiet()
			tr.scaleFoo("a", 2)
			tr.createFoo("d", "d", 1)
			tr.stableAndQuiet()
			if writes := len(r.made(isWork)); writes > maxWritesAfterRestore {
				tr.failf("it made %d writes for four Foos", writes)
			}
		}),
		why: "its watches resume at versions that the store has not reached, and get no events until it has"},
	{row: "D8", title: "the API server does not support WatchList", quick: 2, cases: throughout(func(r *replica) {
		r.proxy.Use(isInitialStream, proxy.Refuse(http.StatusUnprocessableEntity))
	})},
	{row: "D9", title: "the token is rotated", exempt: true, cases: one("in a file", func(tr *trial) {
		tr.timeout = 2 * waitTimeout // client-go reads the file once a minute
		r := tr.prepare()
		file := filepath.Join(tr.t.TempDir(), "token")
		var valid atomic.Value
		rotate := func(token string) {
			valid.Store(token)
			tr.must(os.WriteFile(file, []byte(token), 0o600))
		}
		isStale := func(call *proxy.Call) bool { return call.Token != valid.Load() }
		r.proxy.Use(isStale, proxy.Refuse(http.StatusUnauthorized))
		tr.must(r.writeKubeconfig(clientcmdapi.AuthInfo{TokenFile: file}))
		rotate("first")
		tr.must(r.start())
		tr.settledFoo("a", "a", 1)
		rotate("second")
		r.proxy.EndWatches("")
		tr.scaleFoo("a", 2)
	})},
	{row: "D10", title: "a permission is revoked and granted again: the process keeps running",
		cases: lostPermissions()},
	{row: "D11", title: "a quota is exhausted, then raised", quick: 3, cases: []trialCase{
		{name: "of Deployments", run: func(tr *trial) { tr.exhausted("count/deployments.apps", "1", "9", "The API server refused: ") }},
		{name: "of Pods", run: func(tr *trial) { tr.exhausted(corev1.ResourcePods, "1", "9", "cannot create its Pods") }},
		{name: "of CPU", run: func(tr *trial) {
			// It needs containers with a request.
			tr.applyText("limits.yaml", `{apiVersion: v1, kind: LimitRange, metadata: {name: containers, namespace: %[1]s},
  spec: {limits: [{type: Container, defaultRequest: {cpu: 100m}}]}}`)
			tr.exhausted(corev1.ResourceRequestsCPU, "100m", "1", "cannot create its Pods")
		}},
	}},
	{row: "D12", title: "an admission policy rejects a Deployment with a long message, then is deleted",
		quick: 1, cases: []trialCase{
			{name: "a create", run: func(tr *trial) { tr.refuseByPolicy(creates) }},
			{name: "an update", run: func(tr *trial) { tr.refuseByPolicy(updates) }},
		}},
	{row: "D14", title: "other writers fill a Foo and its Deployment with annotations",
		quick: 1, exempt: true, cases: one("of annotations", func(tr *trial) {
			tr.createFoo("a", "a", 1)
			tr.patchFoo("a", annotating(bigAnnotations(maxAnnotations)))
			tr.start()
			tr.stableAndQuiet()
			// The Deployment controller copies the annotations to the ReplicaSet, and adds its own.
			theirs := bigAnnotations(maxAnnotations - 1)
			tr.patchDeployment("a", annotating(theirs))
			tr.protectAnnotations("a", theirs)
			tr.stableAndQuiet()
			tr.scaleFoo("a", 3)
		}), why: "as C14"},
	{row: "D15", title: "the first streams of many large Foos get a 503: they are never all in memory at once",
		exempt: true, cases: one("unavailable", func(tr *trial) {
			tr.timeout = 2 * waitTimeout // each look at the state reads 50 MiB
			r := tr.startWithFoo("a", 1)
			r.kill()
			annotations := annotating(bigAnnotations(maxAnnotations))
			for i := range largeFoos {
				name := fmt.Sprintf("large-%d", i)
				tr.createFoo(name, "a", 1)
				tr.patchFoo(name, annotations)
			}
			isFoos := both(isInitialStream, attempted("foos", "watch"))
			r.proxy.Use(first(2, isFoos), proxy.Refuse(http.StatusServiceUnavailable))
			tr.must(r.start())
			tr.stableAndQuiet()
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.current().ID()))
			tr.must(err)
			_, peak, _ := strings.Cut(string(status), "VmHWM:")
			var kib int
			_, err = fmt.Sscan(peak, &kib)
			tr.must(err)
			if kib > largestPeak {
				tr.failf("it used %d MiB of memory for %d Foos of 256 KiB",
					kib>>10, largeFoos)
			}
		}),
		why: "it lists all objects when their stream fails, and its cache keeps them whole"},
}

// D1: a hundred writes of another client.
func storm(tr *trial) {
	tr.startWithFoo("a", 1)
	for i := range 100 {
		tr.patchDeployment("a", annotating(map[string]string{"storm": strconv.Itoa(i)}))
		if i%20 == 10 {
			tr.scaleFoo("a", int32(i/20+1))
		}
	}
	tr.protectAnnotations("a", map[string]string{"storm": "99"})
}

// D2 and D3: for a while, no request succeeds.
func (tr *trial) outage(fault proxy.Fault) {
	r := tr.start()
	tr.createFoo("a", "a", 1)
	tr.settledFoo("b", "b", 1)
	began := time.Now()
	end := r.proxy.Use(all, fault)
	r.proxy.EndWatches("")
	tr.scaleFoo("a", 3)
	tr.scaleDeployment("b", 4)
	tr.createFoo("c", "c", 1)
	tr.awaitCalls(r, 5, since(began), hasFault)
	tr.mustRun(r)
	end()
}

// D4: calls that are never answered do not delay other Foos.
func (tr *trial) hangCalls(fault proxy.Fault) {
	r := tr.start(tr.flagsOfOurs("-request-timeout=2s")...)
	end := r.proxy.Use(both(isCreate, isAbout("stuck-")), fault)
	tr.createFoo("stuck-1", "stuck-1", 1)
	tr.createFoo("stuck-2", "stuck-2", 1)
	tr.awaitCall(r, hasFault)
	tr.phase = "while two calls hang"
	tr.createFoo("free", "free", 1)
	tr.awaitDeployment("exists", "free", func(*appsv1.Deployment) error { return nil })
	tr.phase = ""
	end()
}

// D5 and D6: a component is killed and restarted while the controller scales a Deployment.
// That write is its only one, so no status changes between the two recordings.
func (tr *trial) restartDuringScale(component string) {
	open := tr.holdScale(tr.startWithFoo("a", 1), proxy.Cut)
	tr.restart(func() {}, component)
	open()
}

const (
	// lostChanges is the least number of versions that a restore goes back: more than the
	// cluster writes while the trial is judged.
	lostChanges = 1000
	// maxWritesAfterRestore is more than a controller needs to converge after the restore.
	maxWritesAfterRestore = 200
)

// lostPermissions makes a case of each permission: it is revoked and granted again.
func lostPermissions() []trialCase {
	var cases []trialCase
	for _, permission := range []string{
		"list foos", "watch foos", "get foos", "update foos/status", "update foos/finalizers",
		"list deployments", "watch deployments", "get deployments",
		"create deployments", "patch deployments", "delete deployments", "create events",
	} {
		cases = append(cases, trialCase{name: permission, run: func(tr *trial) {
			tr.timeout = backoffTimeout
			role := tr.useOwnRole()
			r := tr.start()
			tr.settledFoo("a", "one", 1)
			verb, resource, _ := strings.Cut(permission, " ")
			less := tr.updateRole(without(role, func(rule rbacv1.PolicyRule, granted string) bool {
				return granted == verb && slices.Contains(rule.Resources, resource)
			}))
			r.proxy.EndWatches("")
			if tr.subject.can("rename", 1) {
				tr.renameDeployment("a", "two")
			}
			tr.scaleFoo("a", 2)
			tr.createFoo("b", "b", 1)
			tr.pause(2 * quiet)
			tr.mustRun(r)
			less.Rules = role.Rules
			tr.updateRole(less)
		}})
	}
	return cases
}

// without returns a role without the verbs of its rules that are meant.
func without(role *rbacv1.Role, meant func(rule rbacv1.PolicyRule, verb string) bool) *rbacv1.Role {
	less := role.DeepCopy()
	for i := range less.Rules {
		rule := less.Rules[i]
		less.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return meant(rule, verb) })
	}
	less.Rules = slices.DeleteFunc(less.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
	return less
}

func (tr *trial) updateRole(role *rbacv1.Role) *rbacv1.Role {
	updated, err := tr.cluster.kube.RbacV1().Roles(tr.ns).Update(tr.ctx, role, metav1.UpdateOptions{})
	tr.must(err)
	return updated
}

// useOwnRole makes controllers connect as an account of the trial's own, which has its
// permissions by a Role.
func (tr *trial) useOwnRole() *rbacv1.Role {
	const name = "controller"
	var rules []rbacv1.PolicyRule
	roles := []string{shipped}
	if tr.subject.isUpstream {
		roles = append(roles, upstreamAccount)
	}
	for _, from := range roles {
		role, err := tr.cluster.kube.RbacV1().ClusterRoles().Get(tr.ctx, from, metav1.GetOptions{})
		tr.must(err)
		rules = append(rules, role.Rules...)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := tr.cluster.kube.CoreV1().ServiceAccounts(tr.ns).Create(tr.ctx, account, metav1.CreateOptions{})
	tr.must(err)
	role := tr.createRole(name, rules, tr.ns, name)
	tr.account, err = tr.cluster.accountOf(tr.ctx, tr.ns, name)
	tr.must(err)
	return role
}

// D11: the quotas that docs/operations.md recommends against a user who may write Foos.
func (tr *trial) exhausted(resource corev1.ResourceName, limit, more, said string) {
	tr.timeout = backoffTimeout
	tr.start()
	tr.setQuota(resource, limit)
	tr.settledFoo("a", "a", 1)
	tr.whileRefused("b", samplev1alpha1.ReasonDeploymentFailed, func() {
		tr.createFoo("b", "b", 1)
		tr.awaitReported("b", said, "exceeded quota: few")
	}, func() { tr.setQuota(resource, more) })
}

// D12: a policy refuses a write that one of the Foos needs. Its message has nearly 5 KiB, the
// limit, has characters of more than one byte, and differs for each Deployment.
func (tr *trial) refuseByPolicy(operation string) {
	tr.timeout = backoffTimeout
	tr.startWithFoo("a", 1)
	if operation == updates {
		tr.settledFoo("b", "b", 1)
	}
	tr.deny("b", operation, strings.Repeat("no way – ", 445))
	tr.whileRefused("b", samplev1alpha1.ReasonDeploymentFailed, func() {
		if operation == updates {
			tr.scaleFoo("b", 3)
		} else {
			tr.createFoo("b", "b", 1)
		}
		tr.stableAndQuiet()
		tr.mustSay("b", denialText)
		tr.scaleFoo("a", 2)
		tr.createFoo("c", "c", 1)
	}, tr.withdraw)
}

// maxAnnotations is how many annotations of 1 KiB an object may have: 256 KiB in total.
const maxAnnotations = 256

// bigAnnotations returns annotations of 1 KiB each, key included.
func bigAnnotations(count int) map[string]string {
	annotations := map[string]string{}
	for i := range count {
		key := fmt.Sprintf("somebody/%03d", i)
		annotations[key] = strings.Repeat("x", 1024-len(key))
	}
	return annotations
}

const (
	// largeFoos is a number of Foos of 256 KiB, 50 MiB in all.
	largeFoos = 200
	// largestPeak is less than a controller takes, in KiB, that has them in memory all at
	// once, and more than one that trims each as it arrives.
	largestPeak = 120 << 10
)
