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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testcluster"
	"example.com/sample-controller/test/faults/proxy"
)

// rotatedToken is D9: the token in a file is replaced, and the old one no longer counts.
func rotatedToken(counted) []trialCase {
	return []trialCase{{"in a file", func(ctx context.Context, tr *trial) error {
		tr.patience = 2 * patience // client-go reads the file once a minute
		r, err := tr.prepare(tr.cluster.bare)
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

// lostRights are D10: one right at a time.
func lostRights(writes counted) []trialCase {
	var cases []trialCase
	for _, right := range []string{
		"list foos", "watch foos", "get foos", "update foos/status", "update foos/finalizers",
		"list deployments", "watch deployments", "get deployments", "create deployments", "update deployments", "delete deployments",
		"create events",
	} {
		cases = append(cases, trialCase{right, func(ctx context.Context, tr *trial) error {
			tr.patience = 4 * patience // a refused write is tried again later and later, up to 5 minutes
			role, r, err := tr.startWithRole(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(tr.createFoo(ctx, "a", "one", 1), tr.settled(ctx)); err != nil {
				return err
			}
			less := role.DeepCopy()
			less.Rules = without(role.Rules, right)
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
				return fmt.Errorf("it has ended when it lost the right to %s", right)
			}
			return errors.Join(err, tr.setRole(ctx, role), tr.stableAndQuiet(ctx))
		}})
	}
	return cases
}

// startWithRole starts a controller as an account of the trial's own, whose
// rights are the shipped ones, in a Role.
func (tr *trial) startWithRole(ctx context.Context) (*rbacv1.Role, *replica, error) {
	rbac, name := tr.cluster.kube.RbacV1(), metav1.ObjectMeta{Name: "controller"}
	shipped, err := rbac.ClusterRoles().Get(ctx, shippedRoles, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	if _, err := tr.cluster.kube.CoreV1().ServiceAccounts(tr.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{}); err != nil {
		return nil, nil, err
	}
	role, err := rbac.Roles(tr.ns).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: shipped.Rules}, metav1.CreateOptions{})
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

// without takes a right, such as "get foos", out of rules.
func without(rules []rbacv1.PolicyRule, right string) []rbacv1.PolicyRule {
	verb, resource, _ := strings.Cut(right, " ")
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
