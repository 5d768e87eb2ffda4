// SPDX-License-Identifier: Apache-2.0

// Tests of the decisions, and of what they rest on: ownership, inputs, patches, indexes.

package plan

import (
	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestDecide(t *testing.T) {
	adoptable := []footest.ChildOption{footest.WithoutOwner, footest.WithAdoptBy("a")}
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named Object
		want  Action
	}{
		"no child":                                    {footest.Foo("a"), nil, ActionCreate},
		"as wanted":                                   {footest.Foo("a"), child("a"), ActionNone},
		"drifted":                                     {footest.Foo("a"), child("a", footest.Drifted), ActionUpdate},
		"another Foo's":                               {footest.Foo("a"), child("b"), ActionLeave},
		"an orphan":                                   {footest.Foo("a"), child("a", footest.WithoutOwner), ActionLeave},
		"a deleted Foo's of the same name":            {footest.Foo("a", footest.WithFooUID("uid-new")), child("a"), ActionLeave},
		"another Foo's, being deleted":                {footest.Foo("a"), child("b", footest.Terminating), ActionLeave},
		"an orphan, for this Foo to adopt":            {footest.Foo("a"), child("a", adoptable...), ActionAdopt},
		"an orphan, for another to adopt":             {footest.Foo("a"), child("a", footest.WithoutOwner, footest.WithAdoptBy("b")), ActionLeave},
		"another Foo's, with the annotation":          {footest.Foo("a"), child("b", footest.WithAdoptBy("a")), ActionLeave},
		"to be adopted, but being deleted":            {footest.Foo("a"), child("a", append(adoptable, footest.Terminating)...), ActionLeave},
		"drifted, being deleted":                      {footest.Foo("a"), child("a", footest.Drifted, footest.Terminating), ActionWait},
		"no child, and the Foo is being deleted":      {footest.Foo("a", footest.BeingDeleted), nil, ActionWait},
		"drifted, and the Foo is being deleted":       {footest.Foo("a", footest.BeingDeleted), child("a", footest.Drifted), ActionWait},
		"another Foo's, and the Foo is being deleted": {footest.Foo("a", footest.BeingDeleted), child("b"), ActionWait},
		"to be adopted, and the Foo is being deleted": {footest.Foo("a", footest.BeingDeleted), child("a", adoptable...), ActionWait},
		"no child, suspended":                         {footest.Foo("a", footest.Suspended), nil, ActionSuspend},
		"as wanted, suspended":                        {footest.Foo("a", footest.Suspended), child("a"), ActionNone},
		"drifted, suspended":                          {footest.Foo("a", footest.Suspended), child("a", footest.Drifted), ActionSuspend},
		"another Foo's, suspended":                    {footest.Foo("a", footest.Suspended), child("b"), ActionLeave},
		"to be adopted, suspended":                    {footest.Foo("a", footest.Suspended), child("a", adoptable...), ActionSuspend},
		"being deleted, suspended":                    {footest.Foo("a", footest.Suspended, footest.BeingDeleted), nil, ActionWait},
	} {
		t.Run(name, func(t *testing.T) {
			decided := shipped.Decide(row.foo, row.named, nil, nil)
			if decided.Action != row.want {
				t.Errorf("decided to %s, not to %s", decided.Action, row.want)
			}
		})
	}
}

func TestDecideOnChildrenOfEarlierNames(t *testing.T) {
	old := child("a", footest.Named("old"))
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named Object
		old   Object
		goes  bool
	}{
		"deleted once the wanted one is ready":                  {footest.Foo("a"), child("a"), old, true},
		"kept while the wanted name is taken":                   {footest.Foo("a"), child("b"), old, false},
		"kept while the wanted one is being deleted":            {footest.Foo("a"), child("a", footest.Terminating), old, false},
		"kept while the Foo is being deleted":                   {footest.Foo("a", footest.BeingDeleted), nil, old, false},
		"ignored if it is being deleted already":                {footest.Foo("a"), nil, child("a", footest.Named("old"), footest.Terminating), false},
		"ignored if a deleted Foo of the same name controls it": {footest.Foo("a", footest.WithFooUID("uid-new")), nil, old, false},
		"ignored if the Foo asks for it now":                    {footest.Foo("a"), child("a"), child("a"), false},
		"kept while the Foo is suspended":                       {footest.Foo("a", footest.Suspended), child("a"), old, false},
	} {
		t.Run(name, func(t *testing.T) {
			decided := shipped.Decide(row.foo, row.named, []Object{row.old}, nil)
			if goes := len(decided.Obsolete) == 1; goes != row.goes {
				t.Errorf("deleted = %v, not %v", goes, row.goes)
			}
		})
	}
}

func TestUpdateKeepsTheResourceVersion(t *testing.T) {
	desired := shipped.DesiredUpdate(child("a", footest.Drifted, footest.AtVersion("77")), footest.Foo("a"), nil)
	if desired.GetResourceVersion() != "77" {
		t.Errorf("the update is sent with resourceVersion %q, so that it would overwrite a newer state", desired.GetResourceVersion())
	}
}

func TestNoUpdateIfTheLiveChildNeedsNone(t *testing.T) {
	for name, live := range map[string]Object{
		"as wanted":   child("a"),
		"another's":   child("b", footest.Drifted),
		"nobody's":    child("a", footest.WithoutOwner, footest.Drifted),
		"in deletion": child("a", footest.Terminating, footest.Drifted),
	} {
		if desired := shipped.DesiredUpdate(live, footest.Foo("a"), nil); desired != nil {
			t.Errorf("%s: an update is sent", name)
		}
	}
}

func TestIsControlledBy(t *testing.T) {
	for name, row := range map[string]struct {
		child Object
		want  bool
	}{
		"by this Foo": {child("a"), true},
		"by this Foo, written with another version": {child("a", footest.WithOwner("samplecontroller.k8s.io/v1", "Foo", "uid-a")), true},
		"by nobody":                           {child("a", footest.WithoutOwner), false},
		"by another Foo":                      {child("b"), false},
		"by a deleted Foo of the same name":   {child("a", footest.WithOwner("samplecontroller.k8s.io/v1alpha1", "Foo", "uid-before")), false},
		"by a Foo of another API group":       {child("a", footest.WithOwner("example.com/v1alpha1", "Foo", "uid-a")), false},
		"by another kind of the same group":   {child("a", footest.WithOwner("samplecontroller.k8s.io/v1alpha1", "Bar", "uid-a")), false},
		"by an owner with an invalid version": {child("a", footest.WithOwner("a/b/c", "Foo", "uid-a")), false},
		"by an owner that is not its controller": {child("a", func(child footest.Object) {
			owners := child.GetOwnerReferences()
			owners[0].Controller = nil
			child.SetOwnerReferences(owners)
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shipped.OwnerKind.IsControlledBy(row.child, footest.Foo("a")); got != row.want {
				t.Errorf("isControlledBy = %v, not %v", got, row.want)
			}
		})
	}
}

func TestTheSameTask(t *testing.T) {
	update := func(options ...footest.ChildOption) Child {
		return Child{Action: ActionUpdate, Named: child("a", append(options, footest.Drifted)...)}
	}
	drifted := func(options ...footest.ChildOption) Inputs {
		return update(options...).of(shipped, footest.Foo("a")).Inputs()
	}
	renamed := update()
	renamed.Obsolete = []Object{child("a", footest.Named("old"))}
	for name, want := range map[string]struct {
		task Inputs
		same bool
	}{
		"nothing has changed":                 {drifted(), true},
		"the child's status has changed":      {drifted(footest.AtVersion("21")), footest.Primary.Generation != nil},
		"the child's spec has changed":        {drifted(footest.AtGeneration(2)), false},
		"the child's owner has changed":       {drifted(footest.WithoutOwner), false},
		"the Foo's spec has changed":          {update().of(shipped, footest.Foo("a", footest.WithGeneration(2))).Inputs(), false},
		"the Foo was recreated":               {update().of(shipped, footest.Foo("a", footest.WithFooUID("new"))).Inputs(), false},
		"the decision is another":             {Child{Action: ActionCreate}.of(shipped, footest.Foo("a")).Inputs(), false},
		"there is a child of an earlier name": {renamed.of(shipped, footest.Foo("a")).Inputs(), false},
		"there was no task":                   {Inputs{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := equality.Semantic.DeepEqual(drifted(), want.task); got != want.same {
				t.Errorf("the same: %v", got)
			}
		})
	}
}

// A cache lists objects in any order. If the order made another task, each retry of a
// refused deletion would count as new, and nothing would back off.
func TestATaskDoesNotDependOnTheOrderOfTheCache(t *testing.T) {
	foo, named := footest.Foo("a"), child("a")
	old, older := child("a", footest.Named("old"), footest.AtGeneration(2), footest.AtVersion("22")), child("a", footest.Named("older"), footest.AtGeneration(3), footest.AtVersion("23"))
	task := func(controlled ...Object) Inputs {
		return shipped.Decide(foo, named, controlled, Seen{}).Inputs()
	}
	if !equality.Semantic.DeepEqual(task(named, old, older), task(older, named, old)) {
		t.Error("the same children in another order are another task")
	}
}

// The API server stores these lists, whose elements have no key, or share one.
func TestAPatchOfADeploymentWhoseListsHaveNoKeys(t *testing.T) {
	for name, change := range map[string]func(deployment *appsv1.Deployment){
		"credentials without a name": func(deployment *appsv1.Deployment) {
			deployment.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{}}
		},
		"two ports of a number": func(deployment *appsv1.Deployment) {
			deployment.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{
				{ContainerPort: 53, Protocol: corev1.ProtocolTCP}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			row, foo, live := Foos("nginx:latest").Children[0], footest.Foo("a"), footest.Deployment("a", footest.WithImage("nginx:1"), footest.Changed(change))
			desired := row.DesiredUpdate(live, foo, nil)
			patchType, patch, err := row.Patch(live, desired)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := footest.Patched(live, patchType, patch)
			if err != nil {
				t.Fatal(err)
			}
			footest.ExpectEqual(t, "the patched Deployment", desired, patched.(*appsv1.Deployment))
		})
	}
}

// Names that share a bucket in one process must not share one in the next. Otherwise
// whoever may write Foos could collect such names, and slow down the handlers for all.
func TestBucketsDifferBetweenProcesses(t *testing.T) {
	first, second := NewBuckets(), NewBuckets()
	flooded, left := first.Of(footest.Namespace+"/web"), 0
	const names = 1000
	for i, found := 0, 0; found < names; i++ {
		name := fmt.Sprintf("%s/web-%d", footest.Namespace, i)
		if first.Of(name) != flooded {
			continue
		}
		found++
		if second.Of(name) == second.Of(footest.Namespace+"/web") {
			left++
		}
	}
	if left > names/10 {
		t.Errorf("of %d names in one bucket, %d also share one in another process", names, left)
	}
}

// TestAPatchNamesItsObject fails if a patch may change another object, or another version.
func TestAPatchNamesItsObject(t *testing.T) {
	live := child("a", footest.Drifted, footest.AtVersion("33"))
	_, patch, err := shipped.Patch(live, shipped.DesiredUpdate(live, footest.Foo("a"), nil))
	if err != nil {
		t.Fatal(err)
	}
	var asks metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch, &asks); err != nil || asks.UID != live.GetUID() || asks.ResourceVersion != "33" {
		t.Errorf("the patch is %s (%v)", patch, err)
	}
}
