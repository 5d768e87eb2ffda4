// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/internal/preview"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/kubectl-foo/internal/manifest"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
)

const renderHelp = `Print the children that Foos ask for, and the statuses that they would get, as YAML.

The command reads files only, and needs no cluster. With --observed it takes what is there from the files of a folder,
such as the output of "kubectl get deployments -o yaml", and prints each child as it would be after the sync.`

// renderOptions are the flags of render.
type renderOptions struct {
	genericiooptions.IOStreams

	files    []string
	observed string
	image    string
}

func newRenderCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &renderOptions{IOStreams: streams}
	command := &cobra.Command{
		Use:   "render -f FILE [--observed FOLDER]",
		Short: "Print the children and the status of Foos in files",
		Long:  renderHelp,
		Example: `  kubectl foo render -f artifacts/examples/example-foo.yaml
  kubectl get deployments -o yaml >observed/deployments.yaml
  kubectl foo render -f foo.yaml --observed observed`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "Files with Foos, or - for standard input.")
	flags.StringVar(&o.observed, "observed", "", "Folder with YAML or JSON files of the objects that are there.")
	flags.StringVar(&o.image, "image", options.DefaultImage, "Image of the Pods, as the controller's flag -image.")
	return command
}

func (o *renderOptions) run(ctx context.Context) error {
	foos, err := applied(ctx, o.files, o.In, nil, "")
	if err != nil {
		return err
	}
	table := preview.Table(o.image)
	world, err := o.world(table)
	if err != nil {
		return err
	}
	for _, foo := range foos {
		if err := o.print(preview.Of(table, foo, world, metav1.Now())); err != nil {
			return err
		}
	}
	return nil
}

// print prints the children as they are sent, and the Foo with its status.
func (o *renderOptions) print(sync *preview.Sync) error {
	for _, write := range sync.Writes {
		if write.After != nil {
			if err := report.PrintObject(o.Out, write.After); err != nil {
				return err
			}
		}
	}
	foo := &samplev1alpha1.Foo{ObjectMeta: sync.Foo.ObjectMeta, Spec: sync.Foo.Spec, Status: sync.Status}
	return report.PrintObject(o.Out, foo)
}

// world reads the objects of the folder. Those of other kinds than children are skipped: a
// folder may hold the whole of a namespace.
func (o *renderOptions) world(table []preview.Row) (*preview.World, error) {
	world := preview.NewWorld()
	if o.observed == "" {
		return world, nil
	}
	files, err := manifest.FilesIn(o.observed)
	if err != nil {
		return nil, err
	}
	objects, err := manifest.Read(files, nil)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		i := slices.IndexFunc(table, func(row preview.Row) bool {
			return row.Resource.GroupVersion().WithKind(row.Kind) == object.GroupVersionKind()
		})
		if i < 0 {
			continue
		}
		setNamespace(object.Unstructured)
		child := table[i].Empty()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, child); err != nil {
			return nil, object.Fail("", err)
		}
		world.Add(table[i].Resource, child)
	}
	return world, nil
}
