// SPDX-License-Identifier: Apache-2.0

// The shipped policies and roles against the table: what is in one must be in the other.

package policy

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/sample-controller/test/footest"
)

const (
	permissions = "../../../artifacts/deploy/permissions"
	program     = "sample-controller"
)

// unrestricted returns the resources that the controller may write without a policy.
func unrestricted() sets.Set[string] {
	all := sets.New("events", "events.events.k8s.io", "leases.coordination.k8s.io", "tokenreviews.authentication.k8s.io",
		"subjectaccessreviews.authorization.k8s.io")
	for _, owner := range footest.Owners {
		for _, subresource := range []string{"/status", "/finalizers"} {
			all.Insert(schema.GroupResource{Group: owner.Resource.Group, Resource: owner.Resource.Resource + subresource}.String())
		}
	}
	return all
}

// What the shipped roles let the controller write has a row, and a policy covers it.
func TestThePolicyCoversWhatTheControllerMayWrite(t *testing.T) {
	covered := unrestricted()
	for _, k := range rows {
		name := k.resource(t).GroupResource().String()
		if !slices.ContainsFunc(policies(t), func(policy *policyObject) bool { return covers(policy, k.resource(t)) }) {
			t.Errorf("no policy in %s covers creates, updates and deletes of %s", permissions, name)
		}
		covered.Insert(name)
	}
	for _, shipped := range shipped(t) {
		var rules []rbacv1.PolicyRule
		switch role := shipped.(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			rules = role.Rules
		}
		if strings.Contains(shipped.GetName(), "-foo-") {
			continue // for users
		}
		for _, rule := range rules {
			if !sets.New(rule.Verbs...).HasAny("create", "update", "patch", "delete") {
				continue
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					name := schema.GroupResource{Group: group, Resource: resource}.String()
					if !covered.Has(name) {
						t.Errorf("%s lets the controller write %s, which has no policy or no file here", shipped.GetName(), name)
					}
				}
			}
		}
	}
}

// The shipped role lets the controller read and write each kind. An adoption needs delete,
// too: the admission plugin OwnerReferencesPermissionEnforcement requires it of those who
// change an owner.
func TestTheRoleHasTheRightsForEachKind(t *testing.T) {
	for _, k := range rows {
		of := k.resource(t)
		verbs := []string{"get", "list", "watch", "create", "patch", "delete"}
		missing := sets.New(verbs...)
		for _, shipped := range shipped(t) {
			role, ok := shipped.(*rbacv1.ClusterRole)
			if !ok || role.Name != program {
				continue
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.APIGroups, of.Group) && slices.Contains(rule.Resources, of.Resource) {
					missing.Delete(rule.Verbs...)
				}
			}
		}
		if len(missing) > 0 {
			t.Errorf("the controller may not %s its %s: add this rule to %s/controller.yaml\n- apiGroups: [%q]\n  resources: [%[2]s]\n  verbs: [%[5]s]",
				strings.Join(sets.List(missing), ", "), of.Resource, permissions, of.Group, strings.Join(verbs, ", "))
		}
	}
}

type policyObject = admissionregistrationv1.ValidatingAdmissionPolicy

func policies(t *testing.T) (all []*policyObject) {
	t.Helper()
	for _, object := range shipped(t) {
		if policy, ok := object.(*policyObject); ok {
			all = append(all, policy)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no policy", permissions)
	}
	return all
}

// covers reports whether a policy judges each write of a resource.
func covers(policy *policyObject, resource schema.GroupVersionResource) bool {
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		operations := sets.New[admissionregistrationv1.OperationType](rule.Operations...)
		if sets.New(rule.APIGroups...).Has(resource.Group) && sets.New(rule.APIVersions...).HasAny("*", resource.Version) &&
			sets.New(rule.Resources...).Has(resource.Resource) && operations.HasAll("CREATE", "UPDATE", "DELETE") {
			return true
		}
	}
	return false
}
