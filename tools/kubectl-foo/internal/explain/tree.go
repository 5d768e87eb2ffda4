// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
)

// Node is an object in the tree below a Foo.
type Node struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
	// Waits lists what the object is waiting for.
	Waits []Finding `json:"waits,omitempty"`
	Below []Node    `json:"below,omitempty"`

	created time.Time
}

// tree returns the Foo's children with the objects that they control, and the Events about all of them.
func (s *Subject) tree() (nodes []Node, events []*corev1.Event) {
	nodes, events = []Node{}, s.eventsAbout(s.Owner)
	for _, row := range s.Kind.Children {
		for _, child := range s.ControlledBy(row, s.Owner) {
			nodes = append(nodes, s.node(row.Kind, child, &events))
		}
	}
	return nodes, events
}

func (s *Subject) eventsAbout(object plan.Object) []*corev1.Event {
	var events []*corev1.Event
	for _, event := range s.Below(cluster.Events.GroupVersionResource, object) {
		events = append(events, event.(*corev1.Event)) //nolint:forcetypeassert // an object of the resource
	}
	return events
}

// node returns an object with the ReplicaSets and Pods below it, newest first, and adds their Events.
func (s *Subject) node(kind string, object plan.Object, events *[]*corev1.Event) Node {
	*events = append(*events, s.eventsAbout(object)...)
	node := Node{kind, object.GetName(), stateOf(object), waitsOf(object), nil, object.GetCreationTimestamp().Time}
	if finding := s.deletion(strings.ToLower(kind), object); finding != nil {
		node.Waits = append(node.Waits, *finding)
	}
	for _, resource := range []cluster.Resource{cluster.ReplicaSets, cluster.Pods} {
		for _, below := range s.Below(resource.GroupVersionResource, object) {
			drawn := s.node(resource.Kind, below, events)
			if set, ok := below.(*appsv1.ReplicaSet); ok && set.Status.Replicas == 0 && ptr.Deref(set.Spec.Replicas, 1) == 0 {
				continue // an old ReplicaSet without Pods explains nothing
			}
			node.Below = append(node.Below, drawn)
		}
	}
	slices.SortStableFunc(node.Below, func(a, b Node) int { return b.created.Compare(a.created) })
	return node
}

// stateOf summarizes the state of an object.
func stateOf(object plan.Object) string {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return fmt.Sprintf("%d of %d available", object.Status.AvailableReplicas, ptr.Deref(object.Spec.Replicas, 1))
	case *appsv1.ReplicaSet:
		return fmt.Sprintf("%d of %d available", object.Status.AvailableReplicas, ptr.Deref(object.Spec.Replicas, 1))
	case *corev1.Pod:
		return string(object.Status.Phase)
	}
	return ""
}

// waitsOf returns what an object is waiting for.
func waitsOf(object plan.Object) []Finding {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return deploymentWaits(object)
	case *appsv1.ReplicaSet:
		for _, condition := range object.Status.Conditions {
			if condition.Type == appsv1.ReplicaSetReplicaFailure && condition.Status == corev1.ConditionTrue {
				return []Finding{found(condition.Reason, condition.Message, object.Namespace)}
			}
		}
	case *corev1.Pod:
		return podWaits(object)
	}
	return nil
}

func deploymentWaits(deployment *appsv1.Deployment) []Finding {
	var waits []Finding
	if deployment.Spec.Paused {
		waits = append(waits, Finding{"it is paused", fmt.Sprintf("to resume it: kubectl rollout resume -n %s deployment/%s", deployment.Namespace, deployment.Name)})
	}
	for _, condition := range deployment.Status.Conditions {
		isFailure := condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue
		isLate := condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse
		if isFailure || isLate {
			waits = append(waits, found(condition.Reason, condition.Message, deployment.Namespace))
		}
	}
	return waits
}

func podWaits(pod *corev1.Pod) []Finding {
	var waits []Finding
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			waits = append(waits, found(condition.Reason, condition.Message, pod.Namespace))
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil {
			wait := found(waiting.Reason, cmp.Or(waiting.Message, "(no message)"), pod.Namespace)
			wait.Text = fmt.Sprintf("container %s (image %s): %s", status.Name, status.Image, wait.Text)
			waits = append(waits, wait)
		}
		if last := status.LastTerminationState.Terminated; last != nil {
			waits = append(waits, Finding{
				fmt.Sprintf("container %s exited with code %d: %s", status.Name, last.ExitCode, last.Reason),
				fmt.Sprintf("see its last output: kubectl logs -n %s %s -c %s --previous", pod.Namespace, pod.Name, status.Name),
			})
		}
	}
	return waits
}

// found returns the reason and message of a condition or a container, with advice.
func found(reason, message, namespace string) Finding {
	return Finding{reason + ": " + message, adviceAbout(reason+": "+message, namespace)}
}

// advice lists what a user can do about a failure whose description contains a text.
var advice = []struct{ text, do string }{
	{"exceeded quota", "lower spec.replicas, or request a larger quota: kubectl describe resourcequota -n NAMESPACE"},
	{"failed calling webhook", "the webhook is down or slow; its owner must fix it, and the controller then continues on its own: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"},
	{"denied the request", "an admission policy or webhook rejects this; ask its owner why"},
	{"ValidatingAdmissionPolicy", "an admission policy rejects this: kubectl get validatingadmissionpolicies"},
	{"InvalidImageName", "the controller's flag -image is not the name of an image"},
	{"ErrImage", "check that the image exists and that the nodes may pull it; the controller's flag -image sets it"},
	{"ImagePull", "check that the image exists and that the nodes may pull it; the controller's flag -image sets it"},
	{"Unschedulable", "check what the nodes have available: kubectl describe nodes"},
	{"FailedCreate", "the ReplicaSet's Events have the details: kubectl get events -n NAMESPACE"},
	{"ProgressDeadlineExceeded", "check what its Pods are waiting for, below and in: kubectl get events -n NAMESPACE"},
}

// adviceAbout returns what a user can do, or "".
func adviceAbout(text, namespace string) string {
	for _, a := range advice {
		if strings.Contains(text, a.text) {
			return strings.ReplaceAll(a.do, "NAMESPACE", namespace)
		}
	}
	return ""
}
