// SPDX-License-Identifier: Apache-2.0

// Rows D9 and D10: a rotated token, and permissions that are revoked.

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

// rotatedToken is D9: the token in a file is replaced, and the old one becomes invalid.
func rotatedToken(writeCounts) []trialCase {
	return []trialCase{{"in a file", func(ctx context.Context, tr *trial) error {
		tr.timeout = 2 * waitTimeout // client-go reads the file once a minute
		r, err := tr.prepare(tr.cluster.exempt)
		if err != nil {
			return err
		}
		file := filepath.Join(tr.folder, "token")
		var valid atomic.Value
		rotate := func(token string) error {
			valid.Store(token)
			return os.WriteFile(file, []byte(token), 0o600)
		}
		r.proxy.Use(func(call *proxy.Call) proxy.Fault {
			if call.Token != valid.Load() {
				return proxy.Unauthorized
			}
			return nil
		})
		if err := errors.Join(r.writeKubeconfig(clientcmdapi.AuthInfo{TokenFile: file}),
			rotate("first"), r.process.start(), tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx), rotate("second")); err != nil {
			return err
		}
		r.proxy.EndWatches("")
		return errors.Join(tr.scaleFoo(ctx, "a", 2), tr.stableAndQuiet(ctx))
	}}}
}

// lostPermissions are D10: one permission at a time is revoked and granted again.
func lostPermissions(writes writeCounts) []trialCase {
	var cases []trialCase
	for _, permission := range []string{
		"list foos", "watch foos", "get foos", "update foos/status", "update foos/finalizers",
		"list deployments", "watch deployments", "get deployments", "create deployments", "patch deployments", "delete deployments",
		"create events",
	} {
		cases = append(cases, trialCase{permission, func(ctx context.Context, tr *trial) error {
			tr.timeout = 4 * waitTimeout // the back-off of a refused write grows to 5 minutes
			role, r, err := tr.startWithRole(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(tr.createFoo(ctx, "a", "one", 1), tr.settled(ctx)); err != nil {
				return err
			}
			less := role.DeepCopy()
			less.Rules = without(role.Rules, permission)
			if err := tr.setRole(ctx, less); err != nil {
				return err
			}
			r.proxy.EndWatches("")
			if writes["rename"] > 0 {
				err = tr.renameDeployment(ctx, "a", "two")
			}
			err = errors.Join(err, tr.scaleFoo(ctx, "a", 2), tr.createFoo(ctx, "b", "b", 1))
			pause(ctx, 2*quiet)
			if r.process.hasEnded() {
				return fmt.Errorf("the process ended when it lost the permission to %s", permission)
			}
			return errors.Join(err, tr.setRole(ctx, role), tr.stableAndQuiet(ctx))
		}})
	}
	return cases
}

// startWithRole starts a controller as an account of the trial's own, which has the
// shipped permissions by a Role.
func (tr *trial) startWithRole(ctx context.Context) (*rbacv1.Role, *replica, error) {
	rbac, name := tr.cluster.kube.RbacV1(), metav1.ObjectMeta{Name: "controller"}
	shipped, err := rbac.ClusterRoles().Get(ctx, shippedRoles, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	if _, err := tr.cluster.kube.CoreV1().ServiceAccounts(tr.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{}); err != nil {
		return nil, nil, err
	}
	rules := shipped.Rules
	if tr.subject == run.upstream {
		rules = append(rules, upstreamRules()...)
	}
	role, err := rbac.Roles(tr.ns).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		return nil, nil, err
	}
	_, err = rbac.RoleBindings(tr.ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: tr.ns, Name: name.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, nil, err
	}
	account, err := testcluster.ConfigOf(ctx, tr.cluster.config, tr.ns, name.Name)
	if err != nil {
		return nil, nil, err
	}
	r, err := tr.startAs(account)
	return role, r, err
}

func (tr *trial) setRole(ctx context.Context, role *rbacv1.Role) error {
	role = role.DeepCopy()
	role.ResourceVersion = ""
	_, err := tr.cluster.kube.RbacV1().Roles(tr.ns).Update(ctx, role, metav1.UpdateOptions{})
	return err
}

// without removes a permission, such as "get foos", from rules.
func without(rules []rbacv1.PolicyRule, permission string) []rbacv1.PolicyRule {
	verb, resource, _ := strings.Cut(permission, " ")
	var less []rbacv1.PolicyRule
	for _, rule := range rules {
		rule = *rule.DeepCopy()
		if slices.Contains(rule.Resources, resource) {
			rule.Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == verb })
		}
		if len(rule.Verbs) > 0 {
			less = append(less, rule)
		}
	}
	return less
}
