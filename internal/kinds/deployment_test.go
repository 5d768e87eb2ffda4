// SPDX-License-Identifier: Apache-2.0

// Tests of the desired Deployment, of its row, and of the fields that the caches keep.

package kinds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

func TestNewDeployment(t *testing.T) {
	footest.ExpectEqual(t, "the Deployment", footest.Created("a"), newChild(footest.Foo("a")))
}

func TestNewDeploymentSharesNothingWithItsFoo(t *testing.T) {
	source := footest.Foo("a")
	*newChild(source).(*appsv1.Deployment).Spec.Replicas = 9
	footest.ExpectEqual(t, "the Foo", footest.Foo("a"), source)
}

func TestRepairedDeployment(t *testing.T) {
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		found *appsv1.Deployment
		want  *appsv1.Deployment // nil if there is nothing to repair
	}{
		"as wanted":                          {footest.Foo("a"), footest.Deployment("a"), nil},
		"fields of others changed":           {footest.Foo("a"), footest.Deployment("a", footest.WithSidecar), nil},
		"other labels in the template":       {footest.Foo("a"), footest.Deployment("a", footest.WithTemplateLabel("zone", "1")), nil},
		"replicas":                           {footest.Foo("a", footest.WithReplicas(5)), footest.Deployment("a", footest.WithSidecar), footest.Deployment("a", footest.WithSidecar, footest.ScaledTo(5))},
		"replicas that the Foo does not set": {footest.Foo("a", footest.WithoutReplicas), footest.Deployment("a", footest.ScaledTo(7)), nil},
		"the image":                          {footest.Foo("a"), footest.Deployment("a", footest.WithImage("nginx:1"), footest.WithSidecar), footest.Deployment("a", footest.WithSidecar)},
		"a label of the template":            {footest.Foo("a"), footest.Deployment("a", footest.WithTemplateLabel("app", "apache")), footest.Deployment("a")},
		"all labels of the template":         {footest.Foo("a"), footest.Deployment("a", footest.Changed(func(found *appsv1.Deployment) { found.Spec.Template.Labels = nil })), footest.Deployment("a")},
		"another selector, as wanted": {
			footest.Foo("a"), footest.Deployment("a", withSelected("app", "byhand"), withSelected("controller", "b")), nil,
		},
		"labels that another selector requires": {
			footest.Foo("a"),
			footest.Deployment("a", withSelected("app", "byhand"), footest.WithTemplateLabel("app", "nginx")),
			footest.Deployment("a", withSelected("app", "byhand")),
		},
		"the container is gone": {
			footest.Foo("a"),
			footest.Deployment("a", footest.Changed(func(found *appsv1.Deployment) {
				found.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "envoy:1"}}
			})),
			footest.Deployment("a", footest.Changed(func(want *appsv1.Deployment) {
				want.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "envoy:1"}, {Name: "nginx", Image: "nginx:latest"}}
			})),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := row.found.DeepCopy()
			if drifted := shipped.DescribeDrift(row.found, row.foo, nil) != ""; drifted != (row.want != nil) {
				t.Errorf("drifted = %v, not %v", drifted, row.want != nil)
			}
			repaired, want := shipped.DesiredUpdate(row.found, row.foo, nil), row.want
			if want == nil && repaired == nil { // what is set again does not change either
				repaired, want = row.found.DeepCopy(), before
				shipped.SetOwned(repaired, row.foo, nil)
			}
			footest.ExpectEqual(t, "the repaired Deployment", want, repaired)
			footest.ExpectEqual(t, "the Deployment that was found", before, row.found)
		})
	}
}

// withSelected adds a label to a Deployment's selector and to its Pods.
func withSelected(key, value string) footest.ChildOption {
	return footest.Changed(func(deployment *appsv1.Deployment) {
		deployment.Spec.Selector.MatchLabels[key] = value
		deployment.Spec.Template.Labels[key] = value
	})
}

// A rename causes no outage: the Deployment with the earlier name serves until the new one
// does.
func TestAnEarlierDeploymentStaysInService(t *testing.T) {
	old, notYet := footest.Deployment("a", footest.Named("old")), withCounts(2, 2, 1)
	for name, row := range map[string]struct {
		named, old plan.Object
		stays      bool
	}{
		"there is no other yet":      {nil, old, true},
		"the other is not ready":     {footest.Deployment("a", notYet), old, true},
		"the other has drifted":      {footest.Deployment("a", footest.Drifted), old, true},
		"the other is ready":         {footest.Deployment("a"), old, false},
		"it has some Pods available": {nil, footest.Deployment("a", footest.Named("old"), notYet), true},
		"it has no Pods available":   {nil, footest.Deployment("a", footest.Named("old"), withCounts(2, 2, 0)), false},
	} {
		t.Run(name, func(t *testing.T) {
			decided := shipped.Decide(footest.Foo("a"), row.named, []plan.Object{row.old}, nil)
			if stays, goes := len(decided.InService) == 1, len(decided.Obsolete) == 1; stays != row.stays || goes == row.stays {
				t.Errorf("stays = %v, is deleted = %v", stays, goes)
			}
		})
	}
}

func TestANewDeploymentBeginsWithTheNumberOfTheEarlier(t *testing.T) {
	for name, row := range map[string]struct {
		foo           *samplev1alpha1.Foo
		earlier, want int32
	}{
		"the Foo leaves the number to others": {footest.Foo("a", footest.WithoutReplicas), 8, 8},
		"the Foo sets it":                     {footest.Foo("a"), 8, 2},
		"more than a Foo may have":            {footest.Foo("a", footest.WithoutReplicas), 20, 10},
		"none, which would look disabled":     {footest.Foo("a", footest.WithoutReplicas), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			earlier := footest.Deployment("a", footest.Named("old"), footest.ScaledTo(row.earlier))
			if got := shipped.Desired(row.foo, earlier, nil).(*appsv1.Deployment).Spec.Replicas; got == nil || *got != row.want {
				t.Errorf("it begins with %v, not %d", got, row.want)
			}
		})
	}
}

func TestThePullPolicyFollowsTheImage(t *testing.T) {
	for name, row := range map[string]struct {
		image        string
		policy, want corev1.PullPolicy
	}{
		"from a tag to latest":                {"nginx:1", corev1.PullIfNotPresent, corev1.PullAlways},
		"from a digest to latest":             {"example.com:5000/nginx@sha256:" + strings.Repeat("0", 64), corev1.PullIfNotPresent, corev1.PullAlways},
		"from no tag":                         {"example.com:5000/nginx", corev1.PullAlways, corev1.PullAlways},
		"a policy that a user chose":          {"nginx:1", corev1.PullNever, corev1.PullNever},
		"a policy that is not the default":    {"nginx:1", corev1.PullAlways, corev1.PullAlways},
		"nothing changes if the image is the": {footest.DefaultImage, corev1.PullIfNotPresent, corev1.PullIfNotPresent},
	} {
		t.Run(name, func(t *testing.T) {
			drifted := footest.Deployment("a", footest.WithImage(row.image))
			drifted.Spec.Template.Spec.Containers[0].ImagePullPolicy = row.policy
			shipped.SetOwned(drifted, footest.Foo("a"), nil)
			if got := drifted.Spec.Template.Spec.Containers[0].ImagePullPolicy; got != row.want {
				t.Errorf("the policy becomes %s, not %s", got, row.want)
			}
		})
	}
}

func TestThePlatformMayChooseTheUserOfNewPods(t *testing.T) {
	want := footest.Created("a")
	want.Spec.Template.Spec.SecurityContext.RunAsUser = nil
	row, foo := Declared(Options{Image: footest.DefaultImage, OmitPodUser: true})[0].Children[0], footest.Foo("a")
	footest.ExpectEqual(t, "the Pods of a new Deployment", want.Spec.Template.Spec, row.Desired(foo, nil, nil).(*appsv1.Deployment).Spec.Template.Spec)
	if drift := row.DescribeDrift(footest.Created("a"), foo, nil); drift != "" {
		t.Errorf("an existing Deployment has drifted: %s", drift)
	}
}

// A restored container has the settings of a new one if its Pods can run it, so that a
// namespace that enforces the restricted profile accepts them.
func TestAContainerThatIsPutBack(t *testing.T) {
	removed := func(deployment *appsv1.Deployment) *appsv1.Deployment {
		deployment.UID, deployment.ResourceVersion = "uid-web", "1"
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "envoy:1"}}
		return deployment
	}
	want := footest.Created("a").Spec.Template.Spec.Containers[0]
	got := shipped.DesiredUpdate(removed(footest.Created("a")), footest.Foo("a"), nil).(*appsv1.Deployment).Spec.Template.Spec.Containers[1]
	footest.ExpectEqual(t, "the container of a Deployment like a new one", want, got)
	want.VolumeMounts, want.SecurityContext = nil, nil
	got = shipped.DesiredUpdate(removed(footest.Deployment("a")), footest.Foo("a"), nil).(*appsv1.Deployment).Spec.Template.Spec.Containers[1]
	footest.ExpectEqual(t, "the container of upstream's Deployment", want, got)
}

// TestBrokenRowsAreDetected checks that the rules of owned fields find rows that break
// them.
func TestBrokenRowsAreDetected(t *testing.T) {
	type deploymentRow = plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment]
	row := deployment(Options{Image: footest.DefaultImage})
	keeps := func(then func(kept, found *appsv1.Deployment)) func(row *deploymentRow) {
		return func(broken *deploymentRow) {
			broken.Keep = func(kept, found *appsv1.Deployment) {
				row.Keep(kept, found)
				then(kept, found)
			}
		}
	}
	sets := func(then func(child *appsv1.Deployment, before *int32)) func(row *deploymentRow) {
		return func(broken *deploymentRow) {
			broken.SetOwned = func(child *appsv1.Deployment, foo *samplev1alpha1.Foo, view *plan.View) {
				before := child.Spec.Replicas
				row.SetOwned(child, foo, view)
				then(child, before)
			}
		}
	}
	for name, tt := range map[string]struct {
		breakRow func(row *deploymentRow)
		want     string
	}{
		"Keep writes into what was found": {
			keeps(func(_, found *appsv1.Deployment) { found.Spec.Replicas = nil }), "an object that was only read has changed"},
		"Report writes into what was found": {func(row *deploymentRow) {
			row.Report = func(_ *samplev1alpha1.Foo, child *appsv1.Deployment) { child.Status.Replicas++ }
		}, "an object that was only read has changed"},
		"Keep drops an owned field": {keeps(func(kept, _ *appsv1.Deployment) { kept.Spec.Replicas = nil }),
			"by what the cache keeps update (spec.replicas is unset"},
		"Keep drops what Judge reads": {keeps(func(kept, _ *appsv1.Deployment) { kept.Status.AvailableReplicas = 0 }),
			"it is ready: true, by what the cache keeps: false"},
		"SetOwned sets a field of others": {sets(func(child *appsv1.Deployment, _ *int32) {
			child.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}), "fields of others are set"},
		"SetOwned forgets an owned field": {sets(func(child *appsv1.Deployment, before *int32) { child.Spec.Replicas = before }),
			"with the owned fields set it has"},
		"SetOwned never settles": {sets(func(child *appsv1.Deployment, _ *int32) { child.Spec.MinReadySeconds++ }),
			"setting the owned fields twice changes it twice"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := row
			tt.breakRow(&broken)
			var problems []string
			for _, seed := range footest.FuzzSeeds {
				problems = append(problems, rowOf(broken.Of(shipped.OwnerKind)).owned(footest.NewFuzzWorld(t, footest.FooOwner, seed.Script, seed.Noise, seed.Words))...)
			}
			if !slices.ContainsFunc(problems, func(problem string) bool { return strings.Contains(problem, tt.want) }) {
				t.Errorf("no problem contains %q:\n%s", tt.want, strings.Join(problems, "\n"))
			}
		})
	}
}

// fillDeployment fills the other fields that users can set.
func fillDeployment(deployment *appsv1.Deployment) {
	template := &deployment.Spec.Template
	template.Annotations = deployment.Annotations
	template.Labels["other"] = "label"
	template.Spec.Containers[0].Image = "example.com/" + strings.Repeat("i", 100<<10)
	template.Spec.Containers[0].Args = []string{strings.Repeat("a", 100<<10)}
	template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "other", Image: strings.Repeat("i", 100<<10)})
	deployment.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: strings.Repeat("m", 100<<10)},
		{Type: "Others", Status: corev1.ConditionTrue, Message: strings.Repeat("m", 100<<10)},
	}
}

func withManyLabels(deployment *appsv1.Deployment) {
	for i := range 2000 {
		deployment.Spec.Selector.MatchLabels[fmt.Sprintf("%x", i)] = ""
	}
}

func withHugeExpression(deployment *appsv1.Deployment) {
	values := make([]string, 20_000)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	deployment.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "other", Operator: metav1.LabelSelectorOpNotIn, Values: values}}
}

func TestAPausedDeploymentIsPausedInTheCache(t *testing.T) {
	paused := footest.Deployment("a", footest.Changed(func(deployment *appsv1.Deployment) {
		deployment.Spec.Paused = true
		deployment.Status.UpdatedReplicas, deployment.Status.Replicas = 1, 2
	}))
	footest.ExpectEqual(t, "the readiness", judgeRollout(paused), judgeRollout(trimmedCopy(t, paused)))
}

func TestDeploymentsWithoutDriftShareMemory(t *testing.T) {
	kept := func(options ...footest.ChildOption) *appsv1.Deployment {
		return trimmedCopy(t, footest.Deployment("a", options...))
	}
	first, second, other := kept(), kept(footest.WithSidecar), kept(footest.WithImage("nginx:1"))
	containers := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	if containers(first) != containers(second) {
		t.Error("two equal Deployments do not share the memory of their containers")
	}
	if image := containers(other).Image; image != "nginx:1" || containers(first).Image != "nginx:latest" {
		t.Errorf("a Deployment with another image has %s in the cache, the others %s", image, containers(first).Image)
	}
}
