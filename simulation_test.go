// SPDX-License-Identifier: Apache-2.0

// Tests of the whole controller: with the kinds and objects of test/looptest, under the faults of
// pkg/reconcile/reconciletest, and in every order of test/simulation/explore; and of its flags and its stop.

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/election"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/process/serving"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/looptest"
	"example.com/sample-controller/test/simulation/explore"
)

func TestLoop(t *testing.T) { looptest.Test(t, newLoop) }

func FuzzSync(f *testing.F) { looptest.FuzzSync(f, newLoop) }

// newLoop makes controllers as main.go does.
func newLoop(of *looptest.Cluster, now clock.WithTicker, all ...*table.Kind) (looptest.Program, error) {
	controllers, err := newControllers(Config{
		Name: "test", Recorder: of.Recorder, Clock: now, CallTimeout: looptest.CallTimeout, Metrics: of.Metrics,
	}, all)
	if err != nil {
		return looptest.Program{}, err
	}
	for _, c := range controllers {
		of.T.Cleanup(c.queue.ShutDown) // a process that never runs leaves it open
	}
	first := controllers[0]
	return looptest.Program{
		Run: func(ctx context.Context) error { return runAll(ctx, ctx, controllers, 2) },
		Sync: func(ctx context.Context, key cache.ObjectName) error {
			_, err := first.syncHandler(ctx, key)
			return err
		},
		Remembers: func(owner plan.Owner) bool {
			return !reflect.DeepEqual(first.known.Of(owner), new(memory.Map).Of(owner))
		},
	}, nil
}

func TestSimulation(t *testing.T) {
	for _, owner := range footest.Owners {
		reconciletest.TestController(t, owner, startSimulated(owner))
	}
}

func TestSimulationRandom(t *testing.T) {
	for _, owner := range footest.Owners {
		reconciletest.TestRandomSequences(t, owner, startSimulated(owner))
	}
}

// All controllers share simulatedMetrics, because component-base keeps each registry forever:
// the registries of 100,000 runs take gigabytes.
var simulatedMetrics = metrics.New("sample-controller", "Foo")

// startSimulated returns the function that runs the controller of a kind with the clients of a
// simulation, wired as in main.go.
func startSimulated(owner *footest.OwnerRow) reconciletest.Start {
	return startWith(func(clients kinds.Clients) *table.Kind { return looptest.KindOf(owner, clients) })
}

// startWith is like startSimulated, for a kind that a test declares.
func startWith(declare func(clients kinds.Clients) *table.Kind) reconciletest.Start {
	return func(ctx context.Context, client rest.Interface, recorder record.EventRecorder) error {
		kube, foos := kubernetes.New(client), clientset.New(client)
		ctx, cancel := context.WithCancel(ctx)
		kubeInformers := kubeinformers.NewSharedInformerFactoryWithOptions(kube, 0)
		fooInformers := fooinformers.NewSharedInformerFactoryWithOptions(foos, reconciletest.ResyncPeriod)
		defer func() {
			cancel()
			kubeInformers.Shutdown()
			fooInformers.Shutdown()
		}()
		kind := declare(kinds.Clients{Kube: kube, Custom: foos, KubeInformers: kubeInformers, CustomInformers: fooInformers})
		if err := table.Prepare(kind); err != nil {
			return err
		}
		controller := NewController(Config{
			Recorder: recorder, Clock: clock.RealClock{}, CallTimeout: reconciletest.CallTimeout, Metrics: simulatedMetrics,
		}, kind)
		kubeInformers.StartWithContext(ctx)
		fooInformers.StartWithContext(ctx)
		kubeInformers.WaitForCacheSyncWithContext(ctx)
		fooInformers.WaitForCacheSyncWithContext(ctx)
		return controller.Run(ctx, ctx, 2)
	}
}

// TestReconcile is what a project's own test looks like: it knows no rows of tests.
func TestReconcile(t *testing.T) {
	reconciletest.Test(t, reconciletest.Controller[*samplev1alpha1.Foo]{
		Kind:    kinds.Declared(kinds.Options{Image: footest.DefaultImage})[0],
		Example: &samplev1alpha1.Foo{Spec: samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(1))}},
		Edits: []func(*samplev1alpha1.Foo){
			func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) },
			func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "api" },
		},
		Start: startSimulated(footest.FooOwner),
		Every: 10, // TestSimulation runs all of the like
	})
}

// simulate runs the simulation of a kind that this program does not have.
func simulate(t *testing.T, of looptest.Simulated) {
	t.Helper()
	of.Start = startWith(of.Declare)
	reconciletest.Test(t, of.Controller)
}

func TestSimulationOfASet(t *testing.T)             { simulate(t, looptest.SetWithSecret()) }
func TestSimulationOfAPolledReference(t *testing.T) { simulate(t, looptest.PolledSecret()) }
func TestSimulationOfACall(t *testing.T)            { simulate(t, looptest.Entry()) }

func TestExplore(t *testing.T) {
	explore.Test(t, explore.Explored{Owner: footest.FooOwner, New: newExplored},
		explored(t, "set", looptest.Set()), explored(t, "named", looptest.SetWithSecret()), explored(t, "elsewhere", looptest.Elsewhere()))
}

func TestExploreConformance(t *testing.T) { explore.TestConformance(t, footest.FooOwner, newExplored) }

// explored returns the controller of a kind that this program does not have. One of its owners asks for one child of a
// set, and with size 2 for three.
func explored(t *testing.T, name string, of looptest.Simulated) explore.Explored {
	t.Helper()
	of.Start = startWith(of.Declare)
	of.Example.Spec.Replicas = new(int32(1))
	// Size 4 asks for the same children with another spec.
	of.Edits = append(of.Edits, func(foo *samplev1alpha1.Foo) { foo.Spec.Suspend = new(false) })
	owner, err := reconciletest.Rows(of.Controller)
	footest.Must(t, err)
	return explore.Explored{Name: name, Owner: owner, New: newExploredOf(of.Declare)}
}

// newExplored returns the controller of Foos for test/simulation/explore.
func newExplored(parts explore.Parts) (explore.Subject, error) {
	return newExploredOf(func(clients kinds.Clients) *table.Kind { return looptest.KindOf(footest.FooOwner, clients) })(parts)
}

// newExploredOf returns a function that makes the controller of a kind for test/simulation/explore.
func newExploredOf(declare func(clients kinds.Clients) *table.Kind) explore.New {
	return func(parts explore.Parts) (explore.Subject, error) {
		foos := declare(kinds.Clients{
			Kube: parts.Kubernetes, Custom: parts.Custom, KubeInformers: parts.KubeInformers, CustomInformers: parts.CustomInformers,
		})
		foos.Resource.Version = cmp.Or(parts.Version, foos.Resource.Version)
		if err := table.Prepare(foos); err != nil {
			return explore.Subject{}, err
		}
		controller := NewController(Config{Recorder: parts.Recorder, Clock: parts.Clock, CallTimeout: explore.CallTimeout, Metrics: simulatedMetrics}, foos)
		controller.queue.TypedDelayingInterface = parts.Queue
		_, err := controller.addEventHandlers(context.Background())
		return explore.Subject{Controller: controller, State: exploredState, ProcessNextWorkItem: controller.processNextWorkItem}, err
	}
}

// exploredState describes the fields of the controller for the exploration: a field that is added
// or renamed has to be added or renamed here. The numbers are of failures and repairs; the
// controller reads them only to choose how long to wait. Without a bound, a key that loses races
// while an event is late would have a new state with each. After five refusals, the back-off is
// longer than it takes until a Foo is stalled. From twelve repairs on, the pause is the longest. The
// opponents of seldom repairs decide only on Events.
var exploredState = explore.State{
	"main.Controller": "kind:not queue:not backoff rollouts known crdMismatch replaced " +
		"references opponents:not callers:not fightPeriod:not recorder:not clock:not callTimeout:not metrics:not",
	"queue.Backoff":       "clock:not keys",
	"queue.keyBackoff":    "failures syncing held stale until:until reported:not",
	"queue.failedPart":    "Attempt inputs err until:until races:2 refusals:6 outages:2",
	"queue.Attempt":       "Again After RefusalBackoff Held Expected Deferred",
	"memory.Rollouts":     "Clock:not Limit:not begun waiting",
	"memory.Map":          "byKey",
	"memory.Owner":        "uid Written stale postponed losses Pruned Transition requested ReadFor Synced Told children",
	"memory.Child":        "part Written Confirmed newSpec problem repairs",
	"memory.Written":      "resourceVersion at",
	"memory.Confirmation": "generation child resourceVersion version recurs",
	"memory.Problem":      "what since",
	"memory.Series":       "what generation count:12 last:pause=count undone fight",
	"plan.Fight":          "Write Name By Drift",
	"plan.Manager":        "Name Subresource",
	"memory.Transition":   "from unanswered",
	"memory.CRDMismatch":  "Clock:not Resource:not retry:not none:not pruned:not",
	"memory.Replaced":     "Clock:not byKey",
	"memory.References":   "Clock:not byKey",
	"memory.reference":    "kind key",
	"memory.reading":      "uid version until:until due:until seen",
	"plan.Seen":           "Digest IsMissing Readiness",
	"plan.Readiness":      "Status Reason Message Stalled At Until AfterReady",
}

// A process that is killed at the end of its grace period keeps the Lease, and loses Events.
func TestAStopTakesLessThanTheGracePeriod(t *testing.T) {
	data, err := os.ReadFile("artifacts/deploy/workload/deployment.yaml")
	footest.Must(t, err)
	var manifest appsv1.Deployment
	footest.Must(t, yaml.Unmarshal(data, &manifest))
	grace := time.Duration(*manifest.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if all := drainTimeout + election.ReleaseTimeout + flushTimeout + serving.ShutdownTimeout; all >= grace {
		t.Errorf("a stop may take %v of %v", all, grace)
	}
}

func TestThisProgramsFlagsAreChecked(t *testing.T) {
	for arguments, want := range map[string]string{
		"-image=mirror/nginx:1 -omit-pod-user -max-rollouts=0 -fight-period=1s": "<nil>",
		"-image= -workers=0": `-image="": must be the name of an image; -workers=0`,
		"-max-rollouts=-1":   "-max-rollouts=-1: must be 0 (no limit) or more",
		"-fight-period=0":    "-fight-period=0s: must be 1s or more",
	} {
		if _, err := parse(strings.Fields(arguments), nil); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", arguments, err, want)
		}
	}
}
