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
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/internal/preview"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const planHelp = `Print what the controller's next sync of each Foo would write.

The command reads the cluster and decides with the code of the controller of the same build. It writes nothing. Run the
plugin of the next release before an upgrade, to see what the new controller would change.

For each Foo with something to do it prints the children to create (+), change (~), adopt (>) and delete (-), the
difference of each change, those that it leaves to others (!), and the status that the Foo would get. A sync is only the
first step: once a child has changed, a later sync may write more.

It can't know what an admission webhook or a policy would say to a write.

Exit code: 0 if there is nothing to do, 1 if there is, 2 after an error.`

// planOptions are the flags of plan.
type planOptions struct {
	config *genericclioptions.ConfigFlags
	genericiooptions.IOStreams

	files         []string
	allNamespaces bool
	image         string
	output        string
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
		RunE: func(command *cobra.Command, args []string) error { return o.run(command.Context(), args) },
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "Files with Foos, or - for standard input: plan as if they had been applied.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Plan the Foos of all namespaces.")
	flags.StringVar(&o.image, "image", options.DefaultImage, "Image of the Pods, as the controller's flag -image.")
	flags.StringVarP(&o.output, "output", "o", formatText, "Format: text, diff (only the differences), json or yaml.")
	return command
}

func (o *planOptions) run(ctx context.Context, names []string) error {
	if len(names) > 0 && (o.allNamespaces || len(o.files) > 0) {
		return errors.New("give names, or -f, or -A: not several of them")
	}
	if err := checkFormat(o.output); err != nil {
		return err
	}
	asked, err := readFoos(o.files, o.In)
	if err != nil {
		return err
	}
	cluster, err := newCluster(o.config, o.allNamespaces)
	if err != nil {
		return err
	}
	foos, err := o.foos(ctx, cluster, names, asked)
	if err != nil {
		return err
	}
	table := preview.Table(o.image)
	world, err := cluster.world(ctx, table)
	if err != nil {
		return err
	}
	now := metav1.Now()
	syncs := make([]*preview.Sync, len(foos))
	for i, foo := range foos {
		syncs[i] = preview.Of(table, foo, world, now)
	}
	if err := printSyncs(o.Out, o.output, syncs); err != nil {
		return err
	}
	if slices.ContainsFunc(syncs, func(sync *preview.Sync) bool { return !sync.IsIdle() }) {
		return errChanges
	}
	return nil
}

// foos returns the Foos to plan: those of the cluster, or those of files as they would be
// in the cluster.
func (o *planOptions) foos(ctx context.Context, cluster *cluster, names []string, asked []*samplev1alpha1.Foo) ([]*samplev1alpha1.Foo, error) {
	stored, err := cluster.foos(ctx)
	if err != nil {
		return nil, err
	}
	if len(o.files) > 0 {
		return applied(asked, stored, cluster.namespace)
	}
	if len(names) == 0 {
		return stored, nil
	}
	var named []*samplev1alpha1.Foo
	for _, name := range names {
		i := slices.IndexFunc(stored, func(foo *samplev1alpha1.Foo) bool { return foo.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no Foo %q in the namespace %q", name, cluster.namespace)
		}
		named = append(named, stored[i])
	}
	return named, nil
}

// applied returns the Foos of files as the API server would have them after an apply.
func applied(asked, stored []*samplev1alpha1.Foo, namespace string) ([]*samplev1alpha1.Foo, error) {
	var foos []*samplev1alpha1.Foo
	for _, foo := range asked {
		if foo.Namespace == "" {
			foo.Namespace = namespace
		}
		if namespace != "" && foo.Namespace != namespace {
			return nil, fmt.Errorf("the Foo %q is of the namespace %q, not %q: set --namespace or -A", foo.Name, foo.Namespace, namespace)
		}
		foos = append(foos, merged(foo, stored))
	}
	return foos, nil
}

// merged returns a Foo with the spec of a file, and with all else as it is stored.
func merged(foo *samplev1alpha1.Foo, stored []*samplev1alpha1.Foo) *samplev1alpha1.Foo {
	i := slices.IndexFunc(stored, func(other *samplev1alpha1.Foo) bool {
		return other.Name == foo.Name && other.Namespace == foo.Namespace
	})
	if i < 0 {
		foo.Generation, foo.Status = 1, samplev1alpha1.FooStatus{}
		return foo
	}
	result := stored[i].DeepCopy()
	if !sameSpec(result, foo) {
		result.Spec = foo.Spec
		result.Generation++
	}
	return result
}
