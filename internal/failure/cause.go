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

package failure

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Who refused a call.
const (
	// Permission means that the controller's account may not make the call, or is unknown.
	Permission = "permission"
	Quota      = "quota"
	// Policy means a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy.
	Policy  = "policy"
	Webhook = "webhook"
	// Other includes an invalid object, and what this program does not recognize.
	Other = "other"
)

// Causes are all results of CauseOf but "".
var Causes = []string{Permission, Quota, Policy, Webhook, Other}

// CauseOf returns who refused a call, or "" if the error is no refusal.
//
// RBAC, quotas and most admission plugins answer with the same code and reason, and
// details that do not tell them apart. So it reads how the message begins. The API server
// writes that part: what a webhook, a policy or a user can choose comes after it.
func CauseOf(err error) string {
	var answer apierrors.APIStatus
	switch {
	case !errors.As(err, &answer):
		return ""
	case !IsRefusal(err):
		if apierrors.IsUnauthorized(err) {
			return Permission
		}
		return ""
	case strings.HasPrefix(answer.Status().Message, "admission webhook "):
		return Webhook // checked first, because a webhook may also set the details
	case answer.Status().Details == nil:
		return Other
	}
	return causeIn(answer.Status().Message, answer.Status().Details)
}

// The explanations of the API server's authorizer and of its admission plugins
// OwnerReferencesPermissionEnforcement and ResourceQuota, by how they begin.
var explanations = []struct{ begins, cause string }{
	{`User "`, Permission},
	{"cannot set blockOwnerDeletion if ", Permission},
	{"cannot set an ownerRef on a resource you can't delete", Permission},
	{"exceeded quota", Quota},
	{"failed quota", Quota}, // one that asks for requests or limits
	{"status unknown for quota", Quota},
	{"insufficient quota", Quota},
}

func causeIn(message string, details *metav1.StatusDetails) string {
	// Of the API server's own, only policies give a cause without a type.
	if slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool { return cause.Type == "" }) {
		return Policy
	}
	resource := schema.GroupResource{Group: details.Group, Resource: details.Kind}
	before := apierrors.NewForbidden(resource, details.Name, errors.New("")).Error()
	if explanation, forbidden := strings.CutPrefix(message, before); forbidden {
		for _, known := range explanations {
			if strings.HasPrefix(explanation, known.begins) {
				return known.cause
			}
		}
	}
	return Other
}
