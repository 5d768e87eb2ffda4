// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
)

// found returns what a condition or a container says, with advice.
func found(reason, message, namespace string) Finding {
	return Finding{reason + ": " + message, adviceAbout(reason+": "+message, namespace)}
}

// advice is what a user can do about a failure that a text tells of. %s is the namespace.
var advice = []struct{ text, do string }{
	{"exceeded quota", "lower spec.replicas, or ask for a larger quota: kubectl describe resourcequota -n %s"},
	{"failed calling webhook", "the webhook is down or slow; whoever runs it has to repair it, and the controller then goes on by itself: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"},
	{"denied the request", "a policy or webhook of the cluster refuses this; its owner can say why"},
	{"ValidatingAdmissionPolicy", "a policy of the cluster refuses this: kubectl get validatingadmissionpolicies"},
	{"InvalidImageName", "the controller's flag -image names no image"},
	{"ErrImage", "see whether the image exists and the nodes may pull it; the controller's flag -image names it"},
	{"ImagePull", "see whether the image exists and the nodes may pull it; the controller's flag -image names it"},
	{"Unschedulable", "see what the nodes have left: kubectl describe nodes"},
	{"FailedCreate", "the events of the ReplicaSet say more: kubectl get events -n %s"},
	{"ProgressDeadlineExceeded", "what its Pods wait for is below, and in: kubectl get events -n %s"},
}

// adviceAbout returns what a user can do, or "".
func adviceAbout(text, namespace string) string {
	for _, a := range advice {
		if !strings.Contains(text, a.text) {
			continue
		}
		if strings.Contains(a.do, "%s") {
			return fmt.Sprintf(a.do, namespace)
		}
		return a.do
	}
	return ""
}
