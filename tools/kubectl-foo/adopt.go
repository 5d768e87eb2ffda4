// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/preview"
)

const adoptHelp = `Let Foos adopt the objects that were theirs before a restore from a backup.

Foos want objects by name. If such an object has no controller and shows that the controller made it for this Foo, the
command annotates it with ` + samplev1alpha1.AnnotationAdoptBy + `, and the Foo adopts it. This shows it: the labels that the
controller gives the Foo's new objects or, of an object that the controller has written, those of them that contain the
Foo's name. Any other object that a Foo can't have stays unchanged, and the command says why (!).

It requires permission to patch these objects. Exit codes: 0 if nothing is left to do, 1 if an object stays (or, with
--dry-run, would be annotated), and 2 after an error.`

func newAdoptCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o, isDryRun := &planOptions{config: config, IOStreams: streams}, false
	command := &cobra.Command{
		Use:   "adopt [NAME...] | -A",
		Short: "Let Foos adopt what was theirs before a restore",
		Long:  adoptHelp,
		Example: `  kubectl foo adopt -n shop --dry-run    # what it would annotate
  kubectl foo adopt -n shop              # for all Foos in the namespace`,
		RunE: func(command *cobra.Command, args []string) error { return o.adopt(command.Context(), args, isDryRun) },
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Adopt for the Foos in all namespaces.")
	flags.BoolVar(&isDryRun, "dry-run", false, "Send each annotation as a dry run, which stores nothing.")
	return command
}

func (o *planOptions) adopt(ctx context.Context, names []string, isDryRun bool) error {
	if len(names) > 0 && o.allNamespaces {
		return errors.New("use either names or -A")
	}
	c, err := cluster.New(o.config, o.allNamespaces)
	if err != nil {
		return err
	}
	kinds := kindsWith(o.image)
	targets, err := o.targets(ctx, c, kinds, names)
	if err != nil {
		return err
	}
	world, _, err := c.Find(ctx, kinds.Children())
	if err != nil {
		return err
	}
	var failures []error
	isLeft := false
	for _, target := range targets {
		sync := preview.Of(target.kind, target.owner, world, metav1.Now())
		for _, write := range sync.Writes {
			if write.Action != plan.ActionLeave {
				continue
			}
			foo := target.kind.Name + " " + cache.MetaObjectToName(target.owner).String()
			if !write.WasMadeForOwner() {
				isLeft = true
				ready := meta.FindStatusCondition(sync.After.GetConditions(), samplev1alpha1.ConditionReady)
				fmt.Fprintf(o.Out, "%s ! %s\n", foo, printable.Quote(ready.Message))
				continue
			}
			isLeft = isLeft || isDryRun
			err := c.Annotate(ctx, write.Resource, write.Before, samplev1alpha1.AnnotationAdoptBy, target.owner.GetName(), isDryRun)
			if err == nil {
				fmt.Fprintf(o.Out, "%s > may adopt %s %s\n", foo, write.Kind, write.Name)
			}
			failures = append(failures, err)
		}
	}
	if err := errors.Join(failures...); err != nil || !isLeft {
		return err
	}
	return errChanges
}
