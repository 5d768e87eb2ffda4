// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"

	"example.com/sample-controller/internal/kinds"
	"example.com/sample-controller/internal/names"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/preview"
)

const planHelp = `Print what the controller's next sync of each Foo would write.

The command reads the cluster, decides with the code of the controller from the same build, and writes nothing. Before
an upgrade, run the next release's plugin to see what the new controller would change.

For each Foo that needs a write, it prints the children to create (+), update (~), adopt (>) and delete (-), a diff of each
change, the objects that belong to someone else and stay unchanged (!), and the Foo's new status. A sync is only the first
step: once a child has changed, a later sync may write more.

Only the API server knows how admission webhooks and policies would treat these writes.

Exit codes: 0 if there is nothing to do, 1 if there is, and 2 after an error.`

// planOptions are the flags of plan.
type planOptions struct {
	config *genericclioptions.ConfigFlags
	genericiooptions.IOStreams

	files         []string
	allNamespaces bool
	image         string
	omitPodUser   bool
	output        string
}

func newPlanCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &planOptions{config: config, IOStreams: streams}
	command := &cobra.Command{
		Use:   "plan [NAME...] | -f FILE | -A",
		Short: "Print what the controller would write",
		Long:  planHelp,
		Example: `  kubectl foo plan                   # all Foos in the current namespace
  kubectl foo plan example-foo       # one Foo; for another kind: KIND/NAME
  kubectl foo plan -f new.yaml       # as if the Foos in the file had been applied
  kubectl foo plan -A -o json        # all namespaces, for programs`,
		RunE: func(command *cobra.Command, args []string) error { return o.run(command.Context(), args) },
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "Plan as if the Foos in these files had been applied; - means standard input.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Plan the Foos in all namespaces.")
	flags.StringVar(&o.image, "image", names.DefaultImage, "Image of the Pods; must be the value of the controller's flag -image.")
	flags.BoolVar(&o.omitPodUser, "omit-pod-user", false, "Set no user in new Deployments; must be the value of the controller's flag -omit-pod-user.")
	flags.StringVarP(&o.output, "output", "o", report.FormatText, "Output format: text or json.")
	return command
}

func (o *planOptions) run(ctx context.Context, names []string) error {
	if len(names) > 0 && (o.allNamespaces || len(o.files) > 0) {
		return errors.New("use either names, -f or -A")
	}
	if err := report.CheckFormat(o.output, report.FormatText, report.FormatJSON); err != nil {
		return err
	}
	c, err := cluster.New(o.config, o.allNamespaces)
	if err != nil {
		return err
	}
	kinds := cluster.Kinds(kinds.Declared(kinds.Options{Image: o.image, OmitPodUser: o.omitPodUser}))
	targets, err := o.targets(ctx, c, kinds, names)
	if err != nil {
		return err
	}
	world, _, err := c.Find(ctx, slices.Concat(kinds.Owners(), kinds.Children()))
	if err != nil {
		return err
	}
	now, plans := metav1.Now(), make([]*report.Plan, len(targets))
	for i, target := range targets {
		if plans[i], err = report.NewPlan(preview.Of(target.kind, target.owner, world, now)); err != nil {
			return err
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

// target is an owner to plan.
type target struct {
	kind  *plan.Kind
	owner plan.Owner
}

// targets returns what to plan: owners in the cluster, or owners in files as an apply would store them.
func (o *planOptions) targets(ctx context.Context, c *cluster.Cluster, kinds cluster.Kinds, names []string) ([]target, error) {
	var stored []target
	for _, kind := range kinds {
		owners, err := c.ListOwners(ctx, kind, "")
		if err != nil {
			return nil, err
		}
		for _, owner := range owners {
			stored = append(stored, target{kind, owner})
		}
	}
	if len(o.files) > 0 {
		return o.applied(kinds, stored, c.Namespace)
	}
	if len(names) == 0 {
		return stored, nil
	}
	var named []target
	for _, argument := range names {
		kind, name, err := kinds.Parse(argument)
		if err != nil {
			return nil, err
		}
		owner := find(stored, kind, c.Namespace, name)
		if owner == nil {
			return nil, c.NoOwner(kind, name)
		}
		named = append(named, target{kind, owner})
	}
	return named, nil
}

// applied returns the owners in the files as an apply would store them. Owners without a
// namespace get the given one.
func (o *planOptions) applied(kinds cluster.Kinds, stored []target, namespace string) ([]target, error) {
	builder := resource.NewBuilder(o.config).Unstructured().Local().Flatten()
	for _, file := range o.files {
		if file == "-" {
			builder.Stream(o.In, "standard input")
		} else {
			builder.FilenameParam(false, &resource.FilenameOptions{Filenames: []string{file}})
		}
	}
	var applied []target
	err := builder.Do().Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		found, err := targetOf(kinds, info.Object, namespace)
		if err == nil {
			found.owner, err = appliedTo(find(stored, found.kind, found.owner.GetNamespace(), found.owner.GetName()), found.owner)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", info.Source, err)
		}
		applied = append(applied, found)
		return nil
	})
	return applied, err
}

// targetOf returns an object in a file as an owner.
func targetOf(kinds cluster.Kinds, object runtime.Object, namespace string) (found target, err error) {
	got, want := object.GetObjectKind().GroupVersionKind(), []string{}
	for _, kind := range kinds {
		gvk := kind.Resource.GroupVersion().WithKind(kind.Name)
		if want = append(want, fmt.Sprintf("a %s of %s", kind.Name, gvk.GroupVersion())); got == gvk {
			found.kind = kind
		}
	}
	if found.kind == nil {
		return found, fmt.Errorf("this is a %s of %q, not %s", got.Kind, got.GroupVersion(), strings.Join(want, " or "))
	}
	if found.owner, err = typed(object, got); err != nil {
		return found, err
	}
	switch name := found.owner.GetName(); {
	case name == "":
		return found, fmt.Errorf("the %s has no metadata.name", got.Kind)
	case found.owner.GetNamespace() == "":
		found.owner.SetNamespace(cmp.Or(namespace, metav1.NamespaceDefault))
	case namespace != "" && found.owner.GetNamespace() != namespace:
		return found, fmt.Errorf("%q is in the namespace %q, not %q: set --namespace or -A", name, found.owner.GetNamespace(), namespace)
	}
	return found, nil
}

// typed converts an object to the Go type of its kind. Unknown fields are an error.
func typed(object runtime.Object, gvk schema.GroupVersionKind) (plan.Owner, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	owner, err := fooscheme.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, owner, true)
	return owner.(plan.Owner), err //nolint:forcetypeassert // a kind of the program
}

// appliedTo returns the result of applying an owner to the stored one, which may be nil.
func appliedTo(stored, applied plan.Owner) (plan.Owner, error) {
	if stored == nil {
		applied.SetUID("")
		applied.SetGeneration(1)
		plan.ResetStatus(applied)
		return applied, nil
	}
	if equality.Semantic.DeepEqual(stored.GetSpec(), applied.GetSpec()) {
		return stored, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return nil, err
	}
	if fields["spec"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(applied.GetSpec()); err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, applied); err != nil {
		return nil, err
	}
	applied.SetGeneration(stored.GetGeneration() + 1)
	return applied, nil
}

// find returns the owner with a kind, namespace and name, or nil.
func find(stored []target, kind *plan.Kind, namespace, name string) plan.Owner {
	for _, found := range stored {
		if found.kind == kind && found.owner.GetNamespace() == namespace && found.owner.GetName() == name {
			return found.owner
		}
	}
	return nil
}
