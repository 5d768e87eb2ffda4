// SPDX-License-Identifier: Apache-2.0

// Golden files: an owner in, its children out.

package reconciletest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/pkg/reconcile/plan"
)

var update = flag.Bool("update", false, "Write the children of golden files instead of comparing them.")

const childrenSuffix = ".children.yaml"

// Golden compares, for each owner of the type F in a folder, NAME.yaml, the children that it wants with
// NAME.children.yaml. They are as they are created, in the order of the table; of a row of the owner itself, it has
// the fields that are set. With the flag -update it writes them.
func Golden[F plan.Object](t *testing.T, kind *plan.Kind, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if name, isGolden := strings.CutSuffix(file, childrenSuffix); isGolden {
			if owner := name + ".yaml"; !exists(owner) {
				t.Errorf("%s has no owner: %s does not exist", file, owner)
			}
			continue
		}
		found++
		t.Run(filepath.Base(file), func(t *testing.T) {
			if err := compareChildren[F](kind, file, *update); err != nil {
				t.Error(err)
			}
		})
	}
	if found == 0 {
		t.Errorf("%s has no NAME.yaml with a %s", folder, kind.Name)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func compareChildren[F plan.Object](kind *plan.Kind, file string, update bool) error {
	object, err := readOwner[F](kind, file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	owner, err := kind.Transform(object) // decisions read what the cache keeps
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	got, err := childrenOf(kind, owner.(plan.Owner)) //nolint:forcetypeassert // the kind's type
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	golden := strings.TrimSuffix(file, ".yaml") + childrenSuffix
	if update {
		return os.WriteFile(golden, got, 0o600)
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		return fmt.Errorf("%w: run the test with -update to write it", err)
	}
	if !bytes.Equal(want, got) {
		return fmt.Errorf("%s differs from the children that the owner wants (-file +wanted). If they are right, run the test with -update:\n%s",
			golden, diff.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
	}
	return nil
}

// readOwner reads an owner. It refuses fields that the type does not have: a typing error would test another
// owner than its author means.
func readOwner[F plan.Object](kind *plan.Kind, file string) (owner F, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return owner, err
	}
	var fields map[string]any
	if err := yaml.UnmarshalStrict(text, &fields); err != nil {
		return owner, err
	}
	version := kind.Resource.GroupVersion().String()
	if fields["apiVersion"] != version || fields["kind"] != kind.Name {
		return owner, fmt.Errorf("it has the kind %v of %v, want %s of %s", fields["kind"], fields["apiVersion"], kind.Name, version)
	}
	owner = reflect.New(reflect.TypeFor[F]().Elem()).Interface().(F) //nolint:forcetypeassert // its own type
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, owner, true); err != nil {
		return owner, fmt.Errorf("it is no %s: %w", kind.Name, err)
	}
	if owner.GetName() == "" {
		return owner, fmt.Errorf("the %s has no metadata.name", kind.Name)
	}
	return owner, nil
}

// childrenOf returns the children that an owner wants, as YAML.
func childrenOf(kind *plan.Kind, owner plan.Owner) ([]byte, error) {
	var all [][]byte
	view := kind.NewView()
	for _, row := range kind.Children {
		if err := row.Check(); err != nil {
			return nil, err
		}
		for _, name := range row.NamesFor(owner) {
			if err := keepsOwned(row, owner, name, view); err != nil {
				return nil, err
			}
			child := row.DesiredNamed(owner, name, nil, view)
			if row.IsItself() {
				child.SetOwnerReferences(nil)
			}
			view.Observe(row.Kind, child)
			text, err := childText(row, child)
			if err != nil {
				return nil, fmt.Errorf("encoding the %s: %w", row.Kind, err)
			}
			all = append(all, text)
		}
	}
	return bytes.Join(all, []byte("---\n")), nil
}

func childText(row *plan.ChildKind, child plan.Object) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = row.Resource.GroupVersion().String(), row.Kind
	delete(fields, "status")
	return yaml.Marshal(fields)
}
