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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/internal/preview"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const whyHelp = `Print why a Foo is as it is: its condition, the controller's Lease, the objects that it has and what each of them waits
for, what the next sync would write, who wrote the fields that it owns, and the newest events.

The command only reads. What it may not read it leaves out, and says so.`

// maxEvents is how many events fit on a screen.
const maxEvents = 10

// whyOptions are the flags of why.
type whyOptions struct {
	config *genericclioptions.ConfigFlags
	genericiooptions.IOStreams

	image          string
	leaseNamespace string
	leaseName      string
}

func newWhyCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &whyOptions{config: config, IOStreams: streams}
	command := &cobra.Command{
		Use:     "why NAME",
		Short:   "Print why a Foo is as it is",
		Long:    whyHelp,
		Example: `  kubectl foo why example-foo`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.StringVar(&o.image, "image", options.DefaultImage, "Image of the Pods, as the controller's flag -image.")
	flags.StringVar(&o.leaseNamespace, "lease-namespace", names.Controller, "Namespace of the controller's Lease.")
	flags.StringVar(&o.leaseName, "lease-name", names.Controller, "Name of the controller's Lease.")
	return command
}

func (o *whyOptions) run(ctx context.Context, name string) error {
	cluster, err := newCluster(o.config, false)
	if err != nil {
		return err
	}
	foo, err := cluster.foo(ctx, name)
	if err != nil {
		return err
	}
	table := preview.Table(o.image)
	world, err := cluster.world(ctx, table)
	if err != nil {
		return err
	}
	found, err := cluster.below(ctx)
	if err != nil {
		return err
	}
	report := why{
		out: o.Out, now: time.Now(), foo: foo, table: table, world: world, below: found,
		sync: preview.Of(table, foo, world, metav1.Now()),
	}
	report.lease, report.leaseErr = cluster.lease(ctx, o.leaseNamespace, o.leaseName)
	return report.print()
}

// why is what the command knows.
type why struct {
	out      io.Writer
	now      time.Time
	foo      *samplev1alpha1.Foo
	table    []preview.Row
	world    *preview.World
	below    *below
	sync     *preview.Sync
	lease    *coordinationv1.Lease
	leaseErr error
	errs     []error
}

func (w *why) printf(format string, args ...any) {
	_, err := fmt.Fprintf(w.out, format, args...)
	w.errs = append(w.errs, err)
}

func (w *why) print() error {
	w.printCondition()
	w.printController()
	w.printf("\nWhat it has:\n")
	w.printTree()
	w.printSync()
	w.printOwners()
	w.printEvents()
	for _, missing := range w.below.missing {
		w.printf("\nNot shown: %v\n", missing)
	}
	return errors.Join(w.errs...)
}

func (w *why) printCondition() {
	w.printf("Foo %s/%s\n", w.foo.Namespace, w.foo.Name)
	condition := meta.FindStatusCondition(w.foo.Status.Conditions, samplev1alpha1.ConditionReady)
	switch {
	case condition == nil:
		w.printf("  It has no condition Ready: no controller has synced it.\n")
	default:
		w.printf("  %s, for %s\n", ready(w.foo.Status), w.age(condition.LastTransitionTime.Time))
		if condition.ObservedGeneration != w.foo.Generation {
			w.printf("  This is of generation %d, but the spec is of generation %d: the controller has not seen that yet.\n", condition.ObservedGeneration, w.foo.Generation)
		}
	}
	if text := deletion(w.foo, w.now); text != "" {
		w.printf("  It %s\n", text)
	}
}

// printController says whether a controller is working, by its Lease.
func (w *why) printController() {
	const without = "a controller without -leader-elect has none"
	switch {
	case apierrors.IsNotFound(w.leaseErr):
		w.printf("  Controller: there is no Lease (%s).\n", without)
	case w.leaseErr != nil:
		w.printf("  Controller: unknown, because the Lease can't be read: %v\n", w.leaseErr)
	case w.lease.Spec.HolderIdentity == nil || *w.lease.Spec.HolderIdentity == "":
		w.printf("  Controller: not running. Nobody holds the Lease %s/%s.\n", w.lease.Namespace, w.lease.Name)
	case w.isStale():
		w.printf("  Controller: not running. Its Lease %s/%s was last renewed %s ago; until one runs, nothing changes.\n", w.lease.Namespace, w.lease.Name, w.age(w.lease.Spec.RenewTime.Time))
	default:
		w.printf("  Controller: %s, which renewed its Lease %s ago.\n", *w.lease.Spec.HolderIdentity, w.age(w.lease.Spec.RenewTime.Time))
	}
}

func (w *why) isStale() bool {
	renewed, valid := w.lease.Spec.RenewTime, w.lease.Spec.LeaseDurationSeconds
	return renewed == nil || valid == nil || w.now.Sub(renewed.Time) > time.Duration(*valid)*time.Second
}

func (w *why) printSync() {
	if w.sync.IsIdle() && !slices.ContainsFunc(w.sync.Writes, func(write preview.Write) bool { return write.Verb == preview.Leave }) {
		w.printf("\nThe next sync writes nothing.\n")
		return
	}
	w.printf("\nThe next sync:\n")
	w.errs = append(w.errs, printSteps(w.out, w.sync))
}

func (w *why) printEvents() {
	events := w.below.eventsOf(w.foo.UID, w.tree())
	if len(events) == 0 {
		return
	}
	w.printf("\nEvents, the newest first:\n")
	for _, event := range events[:min(len(events), maxEvents)] {
		w.printf("  %-5s %-8s %s %s: %s: %s\n", w.age(lastSeen(event)), event.Type, event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
	}
	if more := len(events) - maxEvents; more > 0 {
		w.printf("  and %d more\n", more)
	}
}

// lastSeen returns when an event was last counted.
func lastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

func (w *why) age(since time.Time) string {
	return duration.HumanDuration(w.now.Sub(since))
}
