// SPDX-License-Identifier: Apache-2.0

// The verdicts of the tools.

package waiters

import (
	"os"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

const root = "../.."

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

// healthCheck is a health check of Argo CD, compiled.
type healthCheck struct{ script *lua.FunctionProto }

// healthOf runs a health check as Argo CD does: without the libraries that reach outside,
// and not on an object that is being deleted.
func (c *healthCheck) healthOf(t *testing.T, foo *unstructured.Unstructured) health {
	t.Helper()
	if foo.GetDeletionTimestamp() != nil {
		return health{"Progressing", "Pending deletion"}
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	lua.OpenBase(state)
	lua.OpenTable(state)
	state.SetGlobal("obj", luaOf(state, foo.Object))
	state.Push(state.NewFunctionFromProto(c.script))
	must(t, state.PCall(0, 1, nil))
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
