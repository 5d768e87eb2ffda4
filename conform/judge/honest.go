// SPDX-License-Identifier: Apache-2.0

// What a status says, by the rules of kstatus for any kind, and whether it was so.

package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ready reports whether an object says that it is ready for its generation, and whether it
// can say so at all: by a condition, whose type is Ready unless another is given, or as workloads
// do, by numbers of replicas.
func ready(object map[string]any, conditionType string) (says, can bool) {
	conditionType = cmp.Or(conditionType, "Ready")
	u := &unstructured.Unstructured{Object: object}
	status, _, _ := unstructured.NestedMap(object, "status")
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	current := u.GetDeletionTimestamp() == nil && isCurrent(status, u.GetGeneration())
	values := map[string]any{}
	for _, element := range conditions {
		condition, _ := element.(map[string]any)
		values[fmt.Sprint(condition["type"])] = condition["status"]
		if condition["type"] == conditionType {
			current = current && isCurrent(condition, u.GetGeneration())
		}
	}
	if value, ok := values[conditionType]; ok {
		return current && value == "True" && values["Reconciling"] != "True" && values["Stalled"] != "True", true
	}
	wanted, ok, _ := unstructured.NestedFieldNoCopy(object, "spec", "replicas")
	_, counts := status["observedGeneration"]
	if !ok || !counts || u.GetKind() == "" || !hasReplicas(u) {
		return false, false
	}
	want := fmt.Sprint(wanted)
	says = current
	for _, field := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
		value, ok := status[field]
		if !ok {
			value = int64(0)
		}
		isAbsent := !ok && field == "updatedReplicas" && u.GetKind() == "ReplicaSet"
		says = says && (isAbsent || fmt.Sprint(value) == want)
	}
	return says, true
}

// hasReplicas reports whether an object is one of Kubernetes' workloads. The numbers of other
// kinds may mean something else.
func hasReplicas(u *unstructured.Unstructured) bool {
	return strings.HasPrefix(u.GetAPIVersion(), "apps/") && u.GetKind() != "DaemonSet"
}

func isCurrent(status map[string]any, generation int64) bool {
	observed, ok := status["observedGeneration"]
	return !ok || fmt.Sprint(observed) == fmt.Sprint(generation)
}

// span is a state and the version at which it ended.
type span struct {
	State
	until uint64
}

// spansOf returns the states of a history with their ends, the last of which are open.
func spansOf(history []State) []span {
	const open = ^uint64(0)
	var spans []span
	last := map[string]int{}
	for _, s := range history {
		if i, ok := last[s.UID()]; ok {
			spans[i].until = s.Version
		}
		if !s.Deleted {
			last[s.UID()] = len(spans)
			spans = append(spans, span{s, open})
		}
	}
	return spans
}

// SaysReady reports whether any applied object ever said that it is ready.
func SaysReady(run *Run) bool {
	for _, s := range run.History {
		if says, _ := ready(s.Object, run.Options.Ready); says && run.stepOf(&s) >= 0 {
			return true
		}
	}
	return false
}

// stepOf returns the step in which conform applied the generation of an object, or -1.
func (r *Run) stepOf(s *State) int {
	for i, step := range slices.Backward(r.Steps) {
		if generation, ok := step.Generations[s.UID()]; ok && generation == s.meta().GetGeneration() {
			return i
		}
	}
	return -1
}

// lies returns the statuses that say ready although the children of the step's end had not
// existed, or not been ready, at any moment since the object got its generation.
func lies(record *Record, run *Run) []string {
	var texts []string
	spans := spansOf(run.History)
	began, reported := map[string]uint64{}, map[string]bool{}
	for _, owner := range spans {
		step := run.stepOf(&owner.State)
		if step < 0 {
			continue
		}
		key := fmt.Sprintf("%s/%d", owner.UID(), owner.meta().GetGeneration())
		if began[key] == 0 {
			began[key] = owner.Version
		}
		if says, _ := ready(owner.Object, run.Options.Ready); !says || reported[key] {
			continue
		}
		if missing := missingChild(record, run, spans, &owner, step, began[key]); missing != "" {
			reported[key] = true
			texts = append(texts, fmt.Sprintf("%s %s said ready in step %s, but %s", owner.Resource, owner.meta().GetName(), record.Steps[step], missing))
		}
	}
	return texts
}

// missingChild returns which child of the wanted end had not been there when the owner said
// ready, or "".
func missingChild(record *Record, run *Run, spans []span, owner *span, step int, since uint64) string {
	self := fmt.Sprintf("metadata.ownerReferences[%s].kind", run.Options.normal(owner.meta().GetName()))
	for key, all := range record.Ends[step] {
		if record.Mask(run.Case, step)[key+" "] || all[0][self] != owner.meta().GetKind() {
			continue
		}
		isLike := func(s *State) bool { return hasContent(record.Mask(run.Case, step), key, all, run.Options.fields(s)) }
		there, wasReady, canBe := map[string]bool{}, map[string]bool{}, false
		for _, child := range spans {
			if child.Resource+" "+run.Options.normal(child.meta().GetName()) != key {
				continue
			}
			says, can := ready(child.Object, "")
			canBe = canBe || can
			if child.Version <= owner.Version && child.until > since && isLike(&child.State) {
				there[child.UID()] = true
				wasReady[child.UID()] = says || wasReady[child.UID()]
			}
		}
		maps.DeleteFunc(wasReady, func(_ string, was bool) bool { return !was })
		switch {
		case len(there) < len(all):
			return fmt.Sprintf("%s was not there as asked for", key)
		case canBe && len(wasReady) < len(all):
			return fmt.Sprintf("%s was not ready", key)
		}
	}
	return ""
}

// hasContent reports whether an object is like one of the wanted ones, metadata and status
// aside.
func hasContent(mask Mask, key string, wanted []Fields, got Fields) bool {
	content := func(fields Fields) Fields {
		fields = maps.Clone(fields)
		maps.DeleteFunc(fields, func(path, _ string) bool {
			return strings.HasPrefix(path, "metadata.") || strings.HasPrefix(path, "status.")
		})
		return mask.without(key, []Fields{fields})[0]
	}
	for _, fields := range wanted {
		if len(differing(content(fields), content(got))) == 0 {
			return true
		}
	}
	return false
}
