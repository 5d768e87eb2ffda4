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

// Tests of finalizers.

package external

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/footest"
)

// oneObject is a client of one live object.
type oneObject struct {
	live    *foo
	updates int
}

func (c *oneObject) Get(context.Context, string, metav1.GetOptions) (*foo, error) {
	return c.live.DeepCopy(), nil
}

func (c *oneObject) Update(_ context.Context, object *foo, _ metav1.UpdateOptions) (*foo, error) {
	c.live, c.updates = object, c.updates+1
	return object, nil
}

func withFinalizers(names ...string) footest.FooOption {
	return func(f *foo) { f.Finalizers = names }
}

func TestSetFinalizer(t *testing.T) {
	for name, row := range map[string]struct {
		cached, live *foo
		hold         bool
		want         []string
		updates      int
		conflict     bool
	}{
		"added after those of others":  {footest.Foo("a"), footest.Foo("a", withFinalizers("others")), true, []string{"others", "ours"}, 1, false},
		"added already":                {footest.Foo("a"), footest.Foo("a", withFinalizers("ours")), true, []string{"ours"}, 0, false},
		"removed, others' stay":        {footest.Foo("a"), footest.Foo("a", withFinalizers("x", "ours", "y")), false, []string{"x", "y"}, 1, false},
		"removed already":              {footest.Foo("a"), footest.Foo("a", withFinalizers("x")), false, []string{"x"}, 0, false},
		"another object of the name":   {footest.Foo("a"), footest.Foo("a", footest.WithFooUID("next")), true, nil, 0, true},
		"being deleted since":          {footest.Foo("a"), footest.Foo("a", footest.BeingDeleted), true, []string{"foregroundDeletion"}, 0, true},
		"being deleted, and cached so": {footest.Foo("a", footest.BeingDeleted), footest.Foo("a", footest.BeingDeleted, withFinalizers("ours")), false, []string{}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := &oneObject{live: row.live}
			stored, err := SetFinalizer(t.Context(), client, row.cached, "ours", row.hold, metav1.UpdateOptions{})
			if apierrors.IsConflict(err) != row.conflict || !row.conflict && err != nil {
				t.Errorf("the error is %v", err)
			}
			footest.ExpectEqual(t, "finalizers", row.want, stored.Finalizers)
			footest.ExpectEqual(t, "updates", row.updates, client.updates)
		})
	}
}
