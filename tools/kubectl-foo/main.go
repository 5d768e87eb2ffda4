// SPDX-License-Identifier: Apache-2.0

// Command kubectl-foo is a kubectl plugin, "kubectl foo", that says what the controller
// would do before it does it, and why a Foo is as it is. It decides with internal/plan, as
// the controller of the same build does, and writes nothing to the cluster.
//
// plan.go and why.go have the commands. internal/cluster reads clusters, internal/explain
// finds out why, internal/report prints, and internal/ui serves the page.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/klog/v2"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
)

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
	for _, foo := range foos {
		if foo.Namespace == namespace && foo.Name == name {
			return foo
		}
	}
	return nil
}

// completeNames completes the names of Foos for shells.
func completeNames(config *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := cluster.New(config, false)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		foos, err := c.ListFoos(command.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, foo := range foos {
			names = append(names, foo.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// Exit codes, as those of kubectl diff: 0 means that there is nothing to do.
const (
	exitChanges = 1
	exitFailure = 2
)

// errChanges means that a sync would write something.
var errChanges = errors.New("there are changes")

func main() {
	klog.SetLogger(logr.Discard()) // libraries log what the commands say
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := newCommand(streams).ExecuteContext(ctx)
	stop()
	switch {
	case errors.Is(err, errChanges):
		os.Exit(exitChanges)
	case err != nil:
		printError(os.Stderr, err)
		os.Exit(exitFailure)
	}
}

// printError prints an error, which may quote what others wrote. Each of its lines begins
// with our word, so that none passes for something else.
func printError(out io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(out, "error: "+printable.Quote(line))
	}
}

// newCommand returns the command with its subcommands.
func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:           "kubectl-foo",
		Short:         "See what the controller of Foos would do, before it does it",
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl foo"},
	}
	config := genericclioptions.NewConfigFlags(true)
	command.AddCommand(newPlanCommand(config, streams), newWhyCommand(config, streams), newTimelineCommand(config, streams), newUICommand(config, streams))
	return command
}
