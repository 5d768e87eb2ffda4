// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/preview"
)

// Node is an object of the tree below a Foo.
type Node struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
	// Waits are what the object waits for.
	Waits []Finding `json:"waits,omitempty"`
	Below []Node    `json:"below,omitempty"`

	created time.Time
}

// tree returns the Foo's children and what these control.
func (s *Subject) tree() []Node {
	nodes := []Node{}
	for _, row := range s.Table {
		for _, child := range s.World.ControlledBy(row.Resource, s.Foo) {
			nodes = append(nodes, s.node(row.Kind, child, s.below(child.GetUID())))
		}
	}
	return nodes
}

func (s *Subject) node(kind string, object preview.Object, below []Node) Node {
	waits := waitsOf(object)
	if finding := s.deletion(strings.ToLower(kind), object); finding != nil {
		waits = append(waits, *finding)
	}
	return Node{kind, object.GetName(), stateOf(object), waits, below, object.GetCreationTimestamp().Time}
}

// below returns the ReplicaSets and Pods that an object controls, the newest first.
func (s *Subject) below(controller types.UID) []Node {
	var nodes []Node
	for _, set := range s.Below.ReplicaSets {
		// An old one has no Pods, and says nothing.
		if isControlledBy(set, controller) && (set.Status.Replicas > 0 || ptr.Deref(set.Spec.Replicas, 1) > 0) {
			nodes = append(nodes, s.node("ReplicaSet", set, s.below(set.UID)))
		}
	}
	for _, pod := range s.Below.Pods {
		if isControlledBy(pod, controller) {
			nodes = append(nodes, s.node("Pod", pod, nil))
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int {
		return cmp.Or(b.created.Compare(a.created), strings.Compare(a.Name, b.Name))
	})
	return nodes
}

// addBelow adds the UIDs of all that an object controls.
func (s *Subject) addBelow(uids map[types.UID]bool, controller types.UID) {
	for _, set := range s.Below.ReplicaSets {
		if isControlledBy(set, controller) {
			uids[set.UID] = true
			s.addBelow(uids, set.UID)
		}
	}
	for _, pod := range s.Below.Pods {
		if isControlledBy(pod, controller) {
			uids[pod.UID] = true
		}
	}
}

func isControlledBy(object metav1.Object, controller types.UID) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && ref.UID == controller
}

// stateOf returns the counts of an object.
func stateOf(object preview.Object) string {
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

// waitsOf returns what an object waits for.
func waitsOf(object preview.Object) []Finding {
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
		waits = append(waits, Finding{"it is paused", fmt.Sprintf("to go on: kubectl rollout resume -n %s deployment/%s", deployment.Namespace, deployment.Name)})
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
				fmt.Sprintf("container %s ended with exit code %d: %s", status.Name, last.ExitCode, last.Reason),
				fmt.Sprintf("its last words: kubectl logs -n %s %s -c %s --previous", pod.Namespace, pod.Name, status.Name),
			})
		}
	}
	return waits
}

// Owned says who wrote the fields of a child that the Foo owns, by the managers of fields.
type Owned struct {
	Kind   string  `json:"kind"`
	Name   string  `json:"name"`
	Fields []Field `json:"fields"`
}

// Field is a field with the manager that wrote it last.
type Field struct {
	Path      string `json:"path"`
	Manager   string `json:"manager"`
	Operation string `json:"operation"`
	Age       string `json:"age,omitempty"`
}

func (s *Subject) owners() ([]Owned, error) {
	var owners []Owned
	for _, row := range s.Table {
		for _, child := range s.World.ControlledBy(row.Resource, s.Foo) {
			asked, err := report.FieldsOf(row.Desired(s.Foo))
			if err != nil {
				return nil, err
			}
			for _, field := range []string{"apiVersion", "kind", "metadata"} {
				delete(asked, field)
			}
			if fields := s.writers(asked, child.GetManagedFields()); len(fields) > 0 {
				owners = append(owners, Owned{row.Kind, child.GetName(), fields})
			}
		}
	}
	return owners, nil
}

func (o *Owned) print(out *report.Printer) {
	out.Printf("\nWho wrote what the Foo owns of %s %s:\n", o.Kind, o.Name)
	for _, field := range o.Fields {
		ago := ""
		if field.Age != "" {
			ago = ", " + field.Age + " ago"
		}
		out.Printf("  %s: %s (%s)%s\n", field.Path, field.Manager, field.Operation, ago)
	}
}

// writers returns the fields that managers own, in the order of their paths.
func (s *Subject) writers(asked map[string]any, entries []metav1.ManagedFieldsEntry) []Field {
	last := map[string]metav1.ManagedFieldsEntry{}
	for _, entry := range entries {
		var owned map[string]any
		if entry.FieldsV1 == nil || entry.Subresource == "status" || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		for _, path := range ownedLeaves(asked, owned, "") {
			if known, found := last[path]; !found || known.Time.Before(entry.Time) {
				last[path] = entry
			}
		}
	}
	var fields []Field
	for _, path := range slices.Sorted(maps.Keys(last)) {
		entry, age := last[path], ""
		if entry.Time != nil {
			age = s.age(entry.Time.Time)
		}
		fields = append(fields, Field{path, entry.Manager, string(entry.Operation), age})
	}
	return fields
}

// ownedLeaves returns the paths of the leaves of a value that a manager owns.
func ownedLeaves(value any, owned map[string]any, path string) []string {
	var leaves []string
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if below, ok := owned["f:"+name].(map[string]any); ok {
				leaves = append(leaves, ownedLeaves(field, below, strings.TrimPrefix(path+"."+name, "."))...)
			}
		}
	case []any:
		for i, element := range value {
			for key, below := range owned {
				if below, ok := below.(map[string]any); ok && isElement(element, key) {
					leaves = append(leaves, ownedLeaves(element, below, fmt.Sprintf("%s[%d]", path, i))...)
				}
			}
		}
	default:
		leaves = append(leaves, path)
	}
	return leaves
}

// isElement reports whether a list's element has the key of a managed field, such as
// k:{"name":"nginx"}.
func isElement(element any, key string) bool {
	text, isKey := strings.CutPrefix(key, "k:")
	fields, isMap := element.(map[string]any)
	if !isKey || !isMap {
		return false
	}
	var keys map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	if decoder.Decode(&keys) != nil {
		return false
	}
	for name, value := range keys {
		if fmt.Sprint(fields[name]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}
