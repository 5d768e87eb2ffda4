// SPDX-License-Identifier: Apache-2.0

// The verdicts of tools that wait, on a Foo at each moment of its life, and on the
// statuses that the simulation records.

package waiters

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// fooWith returns a Foo of a generation, with a status.
func fooWith(generation int64, status mapping) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: mapping{
		"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
		"metadata": mapping{"name": "a", "namespace": "n", "generation": generation},
		"spec":     mapping{"deploymentName": "web", "replicas": int64(2)},
		"status":   status,
	}}
}

// deleted returns a Foo that is being deleted.
func deleted(foo *unstructured.Unstructured) *unstructured.Unstructured {
	foo.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
	return foo
}

// reported returns a status of a generation with the condition Ready, and with the
// conditions of other types that have the same reason and message.
func reported(generation int64, ready, reason string, others ...string) mapping {
	conditions := []any{condition("Ready", ready, reason, generation)}
	for _, other := range others {
		conditions = append(conditions, condition(other, "True", reason, generation))
	}
	return mapping{"observedGeneration": generation, "availableReplicas": int64(0), "conditions": conditions}
}

func condition(kind, status, reason string, generation int64) mapping {
	return mapping{
		"type": kind, "status": status, "reason": reason, "message": "because of " + reason,
		"observedGeneration": generation, "lastTransitionTime": "2026-11-21T12:00:00Z",
	}
}

// byDefault returns the status that the API server sets, with more fields.
func byDefault(t *testing.T, more mapping) mapping {
	t.Helper()
	versions := part[[]any](t, definitionOf(t), "spec", "versions")
	status := mapping{"conditions": part[[]any](t, versions[0].(mapping),
		"schema", "openAPIV3Schema", "properties", "status", "properties", "conditions", "default")}
	maps.Copy(status, more)
	return status
}

func TestVerdicts(t *testing.T) {
	check := loadHealthCheck(t)
	waiting := health{"Progressing", "Waiting for the controller"}
	unseen := health{"Progressing", "Waiting for the controller to see the newest spec"}
	for what, row := range map[string]struct {
		foo     *unstructured.Unstructured
		kstatus status.Status
		health  health
	}{
		"just created, no controller has seen it":        {fooWith(1, byDefault(t, nil)), status.InProgressStatus, waiting},
		"created and changed, no controller has seen it": {fooWith(2, byDefault(t, nil)), status.InProgressStatus, waiting},
		"upstream's controller left a status":            {fooWith(1, byDefault(t, mapping{"availableReplicas": int64(2)})), status.InProgressStatus, waiting},
		"the spec was changed, not seen yet":             {fooWith(2, reported(1, "True", "Available")), status.InProgressStatus, unseen},
		"stalled, and the spec was changed":              {fooWith(2, reported(1, "False", "DeploymentConflict", "Stalled")), status.InProgressStatus, unseen},
		"rolling out":                                    {fooWith(2, reported(2, "False", "Progressing")), status.InProgressStatus, health{"Progressing", "because of Progressing"}},
		"ready":                                          {fooWith(2, reported(2, "True", "Available")), status.CurrentStatus, health{"Healthy", "because of Available"}},
		"refused a moment ago":                           {fooWith(1, reported(1, "False", "DeploymentFailed")), status.InProgressStatus, health{"Progressing", "because of DeploymentFailed"}},
		"a quota refuses it":                             {fooWith(1, reported(1, "False", "DeploymentFailed", "Stalled")), status.FailedStatus, health{"Degraded", "because of DeploymentFailed"}},
		"the name is taken":                              {fooWith(1, reported(1, "False", "DeploymentConflict", "Stalled")), status.FailedStatus, health{"Degraded", "because of DeploymentConflict"}},
		"a paused rollout":                               {fooWith(1, reported(1, "False", "Progressing", "Stalled")), status.FailedStatus, health{"Degraded", "because of Progressing"}},
		"suspended, with something to do":                {fooWith(1, reported(1, "False", "Suspended", "Stalled", "Suspended")), status.FailedStatus, health{"Suspended", "because of Suspended"}},
		"suspended and ready":                            {fooWith(1, reported(1, "True", "Available", "Suspended")), status.CurrentStatus, health{"Suspended", "because of Available"}},
		"deleted":                                        {deleted(fooWith(1, reported(1, "True", "Available"))), status.TerminatingStatus, health{"Progressing", "Pending deletion"}},
		"ready, with a condition of others":              {fooWith(1, reported(1, "True", "Available", "Audited")), status.CurrentStatus, health{"Healthy", "because of Available"}},
	} {
		t.Run(what, func(t *testing.T) {
			if got := kstatusOf(t, row.foo); got != row.kstatus {
				t.Errorf("kstatus says %s, want %s", got, row.kstatus)
			}
			if got := check.healthOf(t, row.foo); got != row.health {
				t.Errorf("Argo CD says %v, want %v", got, row.health)
			}
		})
	}
}

// installed matches the flag by which the document adds a file to the ConfigMap of Argo CD.
var installed = regexp.MustCompile(`--from-file=resource\.customizations\.health\.([^=\s]+)=(\S+)`)

// loadHealthCheck returns the health check that artifacts/argocd/README.md installs.
func loadHealthCheck(t *testing.T) healthCheck {
	t.Helper()
	flags := installed.FindAllStringSubmatch(string(read(t, filepath.Join(root, "artifacts/argocd/README.md"))), -1)
	if len(flags) != 1 {
		t.Fatalf("the document installs %d health checks", len(flags))
	}
	definition := definitionOf(t)
	group, kind := part[string](t, definition, "spec", "group"), part[string](t, definition, "spec", "names", "kind")
	if want := group + "_" + kind; flags[0][1] != want {
		t.Errorf("the document installs the health check of %s, not of %s", flags[0][1], want)
	}
	return healthCheck(read(t, filepath.Join(root, flags[0][2])))
}

// definitionOf reads the definition of Foos.
func definitionOf(t *testing.T) (found mapping) {
	t.Helper()
	must(t, yaml.Unmarshal(read(t, filepath.Join(root, "artifacts/crd/samplecontroller.k8s.io_foos.yaml")), &found))
	return found
}

// part returns a part of an object of JSON.
func part[T any](t *testing.T, object mapping, path ...string) T {
	t.Helper()
	found, _, err := unstructured.NestedFieldNoCopy(object, path...)
	must(t, err)
	return found.(T)
}

// recorded is a state of a Foo as test/oracle keeps it.
type recorded struct {
	CarriedOut bool
	Foo        unstructured.Unstructured
}

// TestNoToolBelievesAFooBeforeItIsCarriedOut judges the statuses in the directory
// RECORDED_STATUSES: those of the simulation, or of any other test with the oracle. It refuses
// those that an end-to-end test writes by itself, and those whose conditions a
// CustomResourceDefinition of such a test prunes.
func TestNoToolBelievesAFooBeforeItIsCarriedOut(t *testing.T) {
	folder := os.Getenv("RECORDED_STATUSES")
	if folder == "" {
		t.Skip("RECORDED_STATUSES is not set: make test-waiters sets it to the directory in which the simulation writes")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	must(t, err)
	check := loadHealthCheck(t)
	pending, believed := 0, 0
	for _, file := range files {
		var state recorded
		must(t, json.Unmarshal(read(t, file), &state))
		text, err := state.Foo.MarshalJSON()
		must(t, err)
		kstatus, argo := kstatusOf(t, &state.Foo), check.healthOf(t, &state.Foo)
		isCurrent, isHealthy := kstatus == status.CurrentStatus, argo.status == "Healthy"
		if isCurrent != isHealthy || isCurrent && !state.CarriedOut {
			t.Errorf("kstatus says %s, and Argo CD %v, of a Foo that was carried out since its generation began: %v\n%s", kstatus, argo, state.CarriedOut, text)
		}
		if isCurrent {
			believed++
		}
		if generation, _, _ := unstructured.NestedInt64(state.Foo.Object, "status", "observedGeneration"); generation == 0 {
			pending++
		}
	}
	if pending == 0 || believed == 0 {
		t.Errorf("of %d statuses, %d are of no controller, and %d are believed: the record is not complete", len(files), pending, believed)
	}
}

const root = "../../.."

// mapping is an object of JSON.
type mapping = map[string]any

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

// kstatusOf returns the verdict of kstatus.
func kstatusOf(t *testing.T, foo *unstructured.Unstructured) status.Status {
	t.Helper()
	result, err := status.Compute(foo)
	must(t, err)
	return result.Status
}

// health is a verdict of Argo CD.
type health struct{ status, message string }

// healthCheck is a health check of Argo CD, in Lua.
type healthCheck string

// healthOf runs a health check as Argo CD does: without the libraries that reach outside,
// and not on an object that is being deleted.
func (c healthCheck) healthOf(t *testing.T, foo *unstructured.Unstructured) health {
	t.Helper()
	if foo.GetDeletionTimestamp() != nil {
		return health{"Progressing", "Pending deletion"}
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	lua.OpenBase(state)
	lua.OpenTable(state)
	state.SetGlobal("obj", luaOf(state, foo.Object))
	must(t, state.DoString(string(c)))
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the health check returns a %s", state.Get(-1).Type())
	}
	return health{lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))}
}

// luaOf returns a value of JSON as one of Lua.
func luaOf(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case mapping:
		table := state.NewTable()
		for key, item := range value {
			table.RawSetString(key, luaOf(state, item))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(luaOf(state, item))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}
