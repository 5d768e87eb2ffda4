// SPDX-License-Identifier: Apache-2.0

package main

import (
	"example.com/sample-controller/internal/plan"

	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"

	"example.com/sample-controller/internal/options"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/preview"
)

const planHelp = `Print what the controller's next sync of each Foo would write.

The command reads the cluster and decides with the code of the controller of the same build. It writes nothing. Run the
plugin of the next release before an upgrade, to see what the new controller would change.

For each Foo with something to do it prints the children to create (+), change (~), adopt (>) and delete (-), the
difference of each change, those that it leaves to others (!), and the status that the Foo would get. A sync is only the
first step: once a child has changed, a later sync may write more.

What an admission webhook or a policy would say to a write is known only to the API server. --server-dry-run asks it: it
sends each write as a dry run, which stores nothing, and with -f also the Foos of the files. This needs the permission to
make these writes, and policies judge your account, not the controller's.

Exit code: 0 if there is nothing to do, 1 if there is, 2 after an error.`

// planOptions are the flags of plan.
type planOptions struct {
	config *genericclioptions.ConfigFlags
	genericiooptions.IOStreams

	files         []string
	allNamespaces bool
	image         string
	output        string
	serverDryRun  bool
}

func newPlanCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &planOptions{config: config, IOStreams: streams}
	command := &cobra.Command{
		Use:   "plan [NAME...] | -f FILE | -A",
		Short: "Print what the controller would write",
		Long:  planHelp,
		Example: `  kubectl foo plan                   # all Foos of the namespace
  kubectl foo plan example-foo       # one
  kubectl foo plan -f new.yaml       # as if the Foos of the file had been applied
  kubectl foo plan -A -o json        # all, for programs`,
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), args) },
		ValidArgsFunction: completeNames(config),
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "Files with Foos, or - for standard input: plan as if they had been applied.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Plan the Foos of all namespaces.")
	flags.StringVar(&o.image, "image", options.DefaultImage, "Image of the Pods, as the controller's flag -image.")
	flags.StringVarP(&o.output, "output", "o", report.FormatText, "Format: text, diff (only the differences), json or yaml.")
	flags.BoolVar(&o.serverDryRun, "server-dry-run", false, "Also send each write to the API server, as a dry run, and print its answer.")
	return command
}

func (o *planOptions) run(ctx context.Context, names []string) error {
	if len(names) > 0 && (o.allNamespaces || len(o.files) > 0) {
		return errors.New("give names, or -f, or -A: not several of them")
	}
	if err := report.CheckFormat(o.output, report.FormatText, report.FormatDiff, report.FormatJSON, report.FormatYAML); err != nil {
		return err
	}
	c, err := cluster.New(o.config, o.allNamespaces)
	if err != nil {
		return err
	}
	foos, err := o.foos(ctx, c, names)
	if err != nil {
		return err
	}
	table := plan.Foos(o.image)
	world, err := c.World(ctx, table, false)
	if err != nil {
		return err
	}
	now, plans := metav1.Now(), make([]*report.Plan, len(foos))
	for i, foo := range foos {
		if plans[i], err = report.NewPlan(preview.Of(table, foo, world, now)); err != nil {
			return err
		}
		if o.serverDryRun {
			if err := ask(ctx, c, plans[i]); err != nil {
				return err
			}
		}
	}
	if err := report.PrintPlans(o.Out, o.output, plans); err != nil {
		return err
	}
	if slices.ContainsFunc(plans, func(plan *report.Plan) bool { return !plan.Sync.IsIdle() }) {
		return errChanges
	}
	return nil
}

// foos returns the Foos to plan: those of the cluster, or those of files as they would be
// in the cluster.
func (o *planOptions) foos(ctx context.Context, c *cluster.Cluster, names []string) ([]*samplev1alpha1.Foo, error) {
	stored, err := c.ListFoos(ctx)
	if err != nil {
		return nil, err
	}
	if len(o.files) > 0 {
		foos, err := o.applied(stored, c.Namespace)
		for i := range foos {
			if err == nil && o.serverDryRun {
				foos[i], err = c.DryRunFoo(ctx, foos[i])
			}
		}
		return foos, err
	}
	if len(names) == 0 {
		return stored, nil
	}
	var named []*samplev1alpha1.Foo
	for _, name := range names {
		foo := find(stored, c.Namespace, name)
		if foo == nil {
			return nil, fmt.Errorf("there is no Foo %q in the namespace %q", name, c.Namespace)
		}
		named = append(named, foo)
	}
	return named, nil
}

// ask adds the API server's answers to a plan.
func ask(ctx context.Context, c *cluster.Cluster, plan *report.Plan) error {
	for i, write := range plan.Sync.Writes {
		if !write.IsSent() {
			continue
		}
		stored, err := c.DryRun(ctx, write)
		switch {
		case errors.Is(err, cluster.ErrPermission), ctx.Err() != nil:
			return err
		case err != nil:
			plan.Writes[i].Answer = &report.Answer{Refused: err.Error()}
		case stored != nil:
			if differs := write.DriftOf(stored); differs != "" {
				plan.Writes[i].Answer = &report.Answer{Differs: differs}
			}
		}
	}
	// The API server has no Foo of a file to whose status it could say anything.
	if plan.Status == nil || plan.Sync.Foo.GetResourceVersion() == "" {
		return nil
	}
	err := c.DryRunStatus(ctx, plan.Sync.After)
	if errors.Is(err, cluster.ErrPermission) {
		return err
	}
	if err != nil {
		plan.StatusAnswer = &report.Answer{Refused: err.Error()}
	}
	return nil
}

// applied returns the Foos of the files as an apply would make them, if the API server
// takes them. Those without a namespace get the cluster's.
func (o *planOptions) applied(stored []*samplev1alpha1.Foo, namespace string) ([]*samplev1alpha1.Foo, error) {
	builder := resource.NewBuilder(o.config).Unstructured().Local().Flatten()
	for _, file := range o.files {
		if file == "-" {
			builder.Stream(o.In, "standard input")
		} else {
			builder.FilenameParam(false, &resource.FilenameOptions{Filenames: []string{file}})
		}
	}
	var foos []*samplev1alpha1.Foo
	err := builder.Do().Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		foo, err := fooOf(info.Object, namespace)
		if err != nil {
			return fmt.Errorf("%s: %w", info.Source, err)
		}
		foos = append(foos, appliedTo(find(stored, foo.Namespace, foo.Name), foo))
		return nil
	})
	return foos, err
}

// fooOf returns an object of a file as a Foo. Unknown fields are an error.
func fooOf(object runtime.Object, namespace string) (*samplev1alpha1.Foo, error) {
	want := samplev1alpha1.SchemeGroupVersion.WithKind("Foo")
	if got := object.GetObjectKind().GroupVersionKind(); got != want {
		return nil, fmt.Errorf("this is a %s of %q, not a %s of %s", got.Kind, got.GroupVersion(), want.Kind, want.GroupVersion())
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	foo := &samplev1alpha1.Foo{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, foo, true); err != nil {
		return nil, err
	}
	switch {
	case foo.Name == "":
		return nil, fmt.Errorf("the %s has no metadata.name", want.Kind)
	case foo.Namespace == "" && namespace == "":
		foo.Namespace = metav1.NamespaceDefault
	case foo.Namespace == "":
		foo.Namespace = namespace
	case namespace != "" && foo.Namespace != namespace:
		return nil, fmt.Errorf("%q is of the namespace %q, not %q: set --namespace or -A", foo.Name, foo.Namespace, namespace)
	}
	return foo, nil
}

// appliedTo returns a stored Foo, or nil, after an apply of another.
func appliedTo(stored, foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	if stored == nil {
		foo.UID, foo.Generation, foo.Status = "", 1, samplev1alpha1.FooStatus{}
		return foo
	}
	after := stored.DeepCopy()
	if !equality.Semantic.DeepEqual(after.Spec, foo.Spec) {
		after.Spec = foo.Spec
		after.Generation++
	}
	return after
}

// find returns the Foo of a namespace and name, or nil.
func find(foos []*samplev1alpha1.Foo, namespace, name string) *samplev1alpha1.Foo {
	i := slices.IndexFunc(foos, func(foo *samplev1alpha1.Foo) bool { return foo.Namespace == namespace && foo.Name == name })
	if i < 0 {
		return nil
	}
	return foos[i]
}
