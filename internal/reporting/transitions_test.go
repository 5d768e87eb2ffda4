// SPDX-License-Identifier: Apache-2.0

// Tests of the Event of a transition whose write has an unknown outcome.

package reporting

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// Of several writes from one version of a Foo, at most one is stored. If that one has its
// Event, another one whose response was lost has none.
func TestOneTransitionHasOneEvent(t *testing.T) {
	before, after := footest.Foo("a"), footest.Foo("a", footest.WithStatus(footest.Settled("a")), func(foo *samplev1alpha1.Foo) { foo.ResourceVersion = "11" })
	ready := footest.ReadyOf(after.Status)
	other := ready
	other.LastTransitionTime = metav1.NewTime(ready.LastTransitionTime.Add(2 * time.Second))
	for name, row := range map[string]struct {
		writes func(*Transitions)
		want   bool
	}{
		"the response is lost":              {func(t *Transitions) { t.Unknown(before, ready) }, true},
		"one is recorded, then one is lost": {func(t *Transitions) { t.Stored(before); t.Unknown(before, ready) }, false},
		"one is lost, then one is recorded": {func(t *Transitions) { t.Unknown(before, ready); t.Stored(before) }, false},
		"two are lost":                      {func(t *Transitions) { t.Unknown(before, ready); t.Unknown(before, other) }, true},
		"another controller wrote the same": {func(t *Transitions) { t.Unknown(before, other) }, false},
		"one of another reason is lost":     {func(t *Transitions) { t.Unknown(before, metav1.Condition{Type: "Ready", Reason: "Other"}) }, false},
		"one of a deleted Foo of that name is lost": {func(t *Transitions) {
			gone := before.DeepCopy()
			gone.UID = "uid-gone"
			t.Unknown(gone, ready)
		}, false},
		"there was none": {func(*Transitions) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := &Transitions{}
			row.writes(known)
			if missed := known.Missed(before); missed != nil {
				t.Errorf("before the cache has the write, %v counts as missed", missed)
			}
			if missed := known.Missed(after); (missed != nil) != row.want {
				t.Errorf("the missed transition is %v", missed)
			}
			if known.Missed(after) != nil || known.Len() != 0 {
				t.Error("the transition is remembered for ever")
			}
		})
	}
}
