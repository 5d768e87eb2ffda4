// SPDX-License-Identifier: Apache-2.0

package table

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rules returns the permissions that a controller of the kind needs for the objects of its table, and no others.
// What it needs besides, such as to record Events, does not depend on a table.
func (k *Kind) Rules() (rules []rbacv1.PolicyRule) {
	allow := func(resource schema.GroupVersionResource, sub string, verbs ...string) {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource + sub}, Verbs: verbs})
	}
	owner := []string{"get", "list", "watch"}
	if k.Finalizer != "" || slices.ContainsFunc(k.Rows, func(row *Children) bool { return row.IsItself() }) {
		owner = append(owner, "patch")
	}
	allow(k.Resource, "", owner...)
	if !k.IsOthers() {
		allow(k.Resource, "/status", "update")
	}
	if slices.ContainsFunc(k.Rows, func(row *Children) bool { return !row.IsItself() }) {
		// Owner references block the owner's deletion, for which the admission plugin
		// OwnerReferencesPermissionEnforcement requires this.
		allow(k.Resource, "/finalizers", "update")
	}
	for _, row := range k.Rows {
		if row.IsItself() {
			continue
		}
		allow(row.Resource, "", "get", "list", "watch", "create", "patch", "delete")
	}
	for _, row := range k.References {
		isOwned := slices.ContainsFunc(k.Rows, func(children *Children) bool {
			return children.Resource.GroupResource() == row.Resource.GroupResource()
		})
		switch {
		case isOwned || row.Resource.GroupResource() == k.Resource.GroupResource():
		case row.Informer == nil:
			allow(row.Resource, "", "get")
		default:
			allow(row.Resource, "", "get", "list", "watch")
		}
	}
	return rules
}
