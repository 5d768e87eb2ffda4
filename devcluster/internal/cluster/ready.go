// SPDX-License-Identifier: Apache-2.0

// Objects in the new cluster, the components' configuration files, and when components are ready.

package cluster

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	nodeutil "k8s.io/kubernetes/pkg/util/node"
	"k8s.io/kubernetes/pkg/util/taints"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

const (
	// startTimeout is how long to wait for a component that neither becomes ready nor
	// exits. A start takes seconds; the timeout is for a busy machine.
	startTimeout  = 2 * time.Minute
	pollInterval  = 50 * time.Millisecond
	healthTimeout = 5 * time.Second
)

// poll calls check until it returns nil. When ctx is done, it returns the cause and the
// last error of check.
func poll(ctx context.Context, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), last)
	}
	return nil
}

// healthAt returns a check that succeeds when the component at a port answers a request for
// its health with 200.
func healthAt(port int, path string, files rest.TLSClientConfig) (func(context.Context) error, error) {
	config := &rest.Config{Host: httpsURL(port), TLSClientConfig: files, Timeout: healthTimeout}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return health(client.RESTClient(), path), nil
}

func health(component rest.Interface, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := component.Get().AbsPath(path).DoRaw(ctx)
		return err
	}
}

// leads returns a check that succeeds when a component has been elected, before which it
// does nothing. deleteLeases has deleted the leases of an earlier run.
func leads(client kubernetes.Interface, component string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, component, metav1.GetOptions{})
		return err
	}
}

// podsAreAdmitted returns a check that succeeds when Pods can be created in the namespace
// default. They need its service account, which a controller creates.
func podsAreAdmitted(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

// nodesReady returns a check that succeeds when n nodes can run Pods. Without
// kube-controller-manager, new nodes keep their taint, so only the condition counts.
func nodesReady(client kubernetes.Interface, n int, taintsRemoved bool) func(context.Context) error {
	return func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodeLabelKey + "=" + nodeLabelValue})
		if err != nil {
			return err
		}
		leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if ready := countReady(nodes.Items, leases.Items, taintsRemoved); ready < n {
			return fmt.Errorf("%d of %d nodes are ready", ready, n)
		}
		return nil
	}
}

// countReady returns the number of nodes that are Ready and managed by KWOK. After a
// restart, a node still has the status of the last run, but no lease until KWOK manages
// it.
func countReady(nodes []corev1.Node, leases []coordinationv1.Lease, taintsRemoved bool) int {
	managed := make(map[string]bool, len(leases))
	for i := range leases {
		managed[leases[i].Name] = true
	}
	ready := 0
	for i := range nodes {
		if managed[nodes[i].Name] && isReady(&nodes[i], taintsRemoved) {
			ready++
		}
	}
	return ready
}

func isReady(node *corev1.Node, taintsRemoved bool) bool {
	tainted := taints.TaintKeyExists(node.Spec.Taints, corev1.TaintNodeNotReady) ||
		taints.TaintKeyExists(node.Spec.Taints, corev1.TaintNodeUnreachable)
	return nodeutil.IsNodeReady(node) && (!taintsRemoved || !tainted)
}

// kwokUser is KWOK's user name, and the name of its role.
const kwokUser = "kwok"

// kwokRole returns the permissions that KWOK needs for the stages of kwokStages, and no
// others.
func kwokRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: kwokUser},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"nodes/status", "pods/status"}, Verbs: []string{"patch", "update"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "patch", "update", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "create", "patch", "update"}},
		},
	}
}

func kwokRoleBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: kwokUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: kwokUser},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: kwokUser}},
	}
}

// grantKwok grants KWOK its permissions.
func grantKwok(ctx context.Context, client kubernetes.Interface) error {
	_, roleErr := client.RbacV1().ClusterRoles().Create(ctx, kwokRole(), metav1.CreateOptions{})
	_, bindingErr := client.RbacV1().ClusterRoleBindings().Create(ctx, kwokRoleBinding(), metav1.CreateOptions{})
	both := utilerrors.NewAggregate([]error{roleErr, bindingErr})
	if err := utilerrors.FilterOut(both, apierrors.IsAlreadyExists); err != nil {
		return fmt.Errorf("granting KWOK its permissions: %w", err)
	}
	return nil
}

// node returns a node as a kubelet would register it. KWOK sets the status.
func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			nodeLabelKey:           nodeLabelValue,
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: runtime.GOARCH,
		},
	}}
}

// createNodes creates the missing nodes, several at a time.
func createNodes(ctx context.Context, client kubernetes.Interface, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			name := fmt.Sprintf("node-%d", i+1)
			_, err := client.CoreV1().Nodes().Create(ctx, node(name), metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating node %s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// deleteLeases deletes the leases of an earlier run with the same data. Their holders
// have ended, because this process has locked the data directory. To wait until the leases
// expire would take 15 seconds.
func deleteLeases(ctx context.Context, client kubernetes.Interface) error {
	var errs []error
	for _, name := range []string{ControllerManager, Scheduler} {
		err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, name, metav1.DeleteOptions{})
		errs = append(errs, err)
	}
	err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	errs = append(errs, err)
	if err := utilerrors.FilterOut(utilerrors.NewAggregate(errs), apierrors.IsNotFound); err != nil {
		return fmt.Errorf("deleting the leases of an earlier run: %w", err)
	}
	return nil
}

// auditPolicy logs each write once, with its response, user, object and time. The log contains the
// bodies of requests and responses only for the given resources, such as deployments.apps, and
// their subresources. With the bodies of Foos, Deployments, ReplicaSets and Pods, it is 2.3 times
// as large, and the API server needs about a tenth more CPU.
func auditPolicy(bodies []string) string {
	var policy strings.Builder
	policy.WriteString("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n" +
		"- level: None\n  verbs: [get, list, watch]\n")
	for _, name := range bodies {
		resource := schema.ParseGroupResource(name)
		fmt.Fprintf(&policy, "- level: RequestResponse\n  omitManagedFields: true\n  resources:\n"+
			"  - group: %q\n    resources: [%q, %q]\n", resource.Group, resource.Resource, resource.Resource+"/*")
	}
	policy.WriteString("- level: Metadata\n")
	return policy.String()
}

// kwokStages returns KWOK's own fast stages: a node is Ready at once and renews its
// lease, a Pod is Ready as soon as it is bound, a Job's Pod then completes, and a deleted
// Pod is removed at once.
func kwokStages() string {
	return strings.Join([]string{
		nodefast.DefaultNodeInit,
		nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podfast.DefaultPodDelete,
	}, "\n---\n")
}

// prepareFiles creates the directories of the data directory and the files that the components
// read. It returns the authority that signs clients of the API.
func prepareFiles(l layout, p ports, auditBodies []string) (*authority, error) {
	for _, dir := range []string{l.pki(), l.config(), l.logs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	ca, err := preparePKI(l)
	if err != nil {
		return nil, err
	}
	for component, user := range componentUsers() {
		config, err := kubeconfig(ca, httpsURL(p.api), user)
		if err != nil {
			return nil, err
		}
		if err := writeKubeconfig(l.componentKubeconfig(component), config); err != nil {
			return nil, err
		}
	}
	files := map[string]string{l.auditPolicy(): auditPolicy(auditBodies), l.kwokStages(): kwokStages()}
	for path, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("preparing the data directory: %w", err)
		}
	}
	return ca, nil
}
