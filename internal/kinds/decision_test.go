// SPDX-License-Identifier: Apache-2.0

// Tests of the decisions and their basis: ownership, inputs, patches.

package kinds

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	testrows "example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

func TestDecide(t *testing.T) {
	adoptable := []footest.ChildOption{footest.WithoutOwner, footest.WithAdoptBy("a")}
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named plan.Object
		want  plan.Action
	}{
		"no child":  {footest.Foo("a"), nil, plan.ActionCreate},
		"as wanted": {footest.Foo("a"), child("a"), plan.ActionNone},
		"drifted":   {footest.Foo("a"), child("a", footest.Drifted), plan.ActionUpdate},
		"its owner in an older version of the API": {footest.Foo("a"), child("a", footest.WithOwner("samplecontroller.k8s.io/v0alpha1", "Foo", "uid-a")), plan.ActionUpdate},
		"its owner in a newer version of the API":  {footest.Foo("a"), child("a", footest.WithOwner("samplecontroller.k8s.io/v9", "Foo", "uid-a")), plan.ActionNone},
		"another Foo's":                               {footest.Foo("a"), child("b"), plan.ActionLeave},
		"an orphan":                                   {footest.Foo("a"), child("a", footest.WithoutOwner), plan.ActionLeave},
		"a deleted Foo's of the same name":            {footest.Foo("a", footest.WithFooUID("uid-new")), child("a"), plan.ActionLeave},
		"another Foo's, being deleted":                {footest.Foo("a"), child("b", footest.Terminating), plan.ActionWait},
		"an orphan, for this Foo to adopt":            {footest.Foo("a"), child("a", adoptable...), plan.ActionAdopt},
		"an orphan, for another to adopt":             {footest.Foo("a"), child("a", footest.WithoutOwner, footest.WithAdoptBy("b")), plan.ActionLeave},
		"another Foo's, with the annotation":          {footest.Foo("a"), child("b", footest.WithAdoptBy("a")), plan.ActionLeave},
		"to be adopted, but being deleted":            {footest.Foo("a"), child("a", append(adoptable, footest.Terminating)...), plan.ActionWait},
		"drifted, being deleted":                      {footest.Foo("a"), child("a", footest.Drifted, footest.Terminating), plan.ActionWait},
		"no child, and the Foo is being deleted":      {footest.Foo("a", footest.BeingDeleted), nil, plan.ActionWait},
		"drifted, and the Foo is being deleted":       {footest.Foo("a", footest.BeingDeleted), child("a", footest.Drifted), plan.ActionWait},
		"another Foo's, and the Foo is being deleted": {footest.Foo("a", footest.BeingDeleted), child("b"), plan.ActionWait},
		"to be adopted, and the Foo is being deleted": {footest.Foo("a", footest.BeingDeleted), child("a", adoptable...), plan.ActionWait},
		"no child, suspended":                         {footest.Foo("a", footest.Suspended), nil, plan.ActionSuspend},
		"as wanted, suspended":                        {footest.Foo("a", footest.Suspended), child("a"), plan.ActionNone},
		"drifted, suspended":                          {footest.Foo("a", footest.Suspended), child("a", footest.Drifted), plan.ActionSuspend},
		"another Foo's, suspended":                    {footest.Foo("a", footest.Suspended), child("b"), plan.ActionLeave},
		"to be adopted, suspended":                    {footest.Foo("a", footest.Suspended), child("a", adoptable...), plan.ActionSuspend},
		"being deleted, suspended":                    {footest.Foo("a", footest.Suspended, footest.BeingDeleted), nil, plan.ActionWait},
	} {
		t.Run(name, func(t *testing.T) {
			kept := row.named
			if kept != nil {
				trimmed, err := transform(plan.CopyOf(row.named))
				footest.Must(t, err)
				kept = trimmed.(plan.Object)
			}
			for from, named := range map[string]plan.Object{"the API server": row.named, "the cache": kept} {
				if decided := shipped.Decide(row.foo, named, nil, nil); decided.Action != row.want {
					t.Errorf("decided to %s, not to %s, on what is in %s", decided.Action, row.want, from)
				}
			}
		})
	}
}

// A rename causes no outage: the child with the earlier name serves until the new one does.
func TestDecideOnChildrenOfEarlierNames(t *testing.T) {
	old := child("a", footest.Named("old"))
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named plan.Object
		old   plan.Object
		goes  bool
	}{
		"deleted once the wanted one is ready":                  {a(), child("a"), old, true},
		"kept while the wanted name is taken":                   {a(), child("b"), old, false},
		"kept while the wanted one is being deleted":            {a(), child("a", footest.Terminating), old, false},
		"kept while the Foo is being deleted":                   {a(footest.BeingDeleted), nil, old, false},
		"ignored if it is being deleted already":                {a(), nil, child("a", footest.Named("old"), footest.Terminating), false},
		"ignored if a deleted Foo of the same name controls it": {a(footest.WithFooUID("uid-new")), nil, old, false},
		"ignored if the Foo wants it now":                       {a(), child("a"), child("a"), false},
		"kept while the Foo is suspended":                       {a(footest.Suspended), child("a"), old, false},
	} {
		decided := shipped.Decide(row.foo, row.named, []plan.Object{row.old}, nil)
		footest.ExpectEqual(t, name, row.goes, len(decided.Obsolete) == 1)
	}
}

func TestNoUpdateIfTheLiveChildNeedsNone(t *testing.T) {
	for name, live := range map[string]plan.Object{
		"as wanted":   child("a"),
		"another's":   child("b", footest.Drifted),
		"unowned":     child("a", footest.WithoutOwner, footest.Drifted),
		"in deletion": child("a", footest.Terminating, footest.Drifted),
	} {
		if desired := shipped.DesiredUpdate(live, footest.Foo("a"), nil); desired != nil {
			t.Errorf("%s: an update is sent", name)
		}
	}
}

func TestEqualInputs(t *testing.T) {
	update := func(options ...footest.ChildOption) result {
		return result{Action: plan.ActionUpdate, Named: child("a", append(options, footest.Drifted)...)}
	}
	for name, row := range map[string]struct {
		foo   plan.Owner
		child result
		equal bool
	}{
		"nothing has changed":            {a(), update(), true},
		"the child's status has changed": {a(), update(footest.AtVersion("21")), footest.Primary.Generation != nil},
		"the child's spec has changed":   {a(), update(footest.AtGeneration(2)), false},
		"the child's owner has changed":  {a(), update(footest.WithoutOwner), false},
		"the child is being deleted":     {a(), update(footest.Terminating), false},
		"the child was recreated":        {a(), update(func(child footest.Object) { child.SetUID("new") }), false},
		"the Foo's spec has changed":     {a(footest.WithGeneration(2)), update(), false},
		"the Foo was restored":           {a(footest.WithChildName("old")), update(), false},
		"the Foo was recreated":          {a(footest.WithFooUID("new")), update(), false},
		"the Foo is being deleted":       {a(footest.BeingDeleted), update(), false},
		"the decision is another":        {a(), result{Action: plan.ActionCreate}, false},
	} {
		first, _ := update().of(shipped, a())
		second, _ := row.child.of(shipped, row.foo)
		footest.ExpectEqual(t, name, row.equal, equality.Semantic.DeepEqual(first.Inputs(), second.Inputs()))
	}
}

// A cache lists objects in any order.
func TestDecisionsDoNotDependOnTheOrderOfTheCache(t *testing.T) {
	old := child("a", footest.Named("old"), footest.AtGeneration(2), footest.AtVersion("22"))
	older := child("a", footest.Named("older"), footest.AtGeneration(3), footest.AtVersion("23"))
	obsolete := func(controlled ...plan.Object) any { return shipped.Decide(a(), child("a"), controlled, nil).Obsolete }
	footest.ExpectEqual(t, "the obsolete children in another order", obsolete(old, older), obsolete(older, old))
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
			row, foo, live := declared("nginx:latest").Children[0], footest.Foo("a"), footest.Deployment("a", footest.WithImage("nginx:1"), footest.Changed(change))
			desired := row.DesiredUpdate(live, foo, nil)
			patchType, patch, err := row.Patch(live, desired)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := testrows.Patched(live, patchType, patch)
			if err != nil {
				t.Fatal(err)
			}
			footest.ExpectEqual(t, "the patched Deployment", desired, patched.(*appsv1.Deployment))
		})
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
