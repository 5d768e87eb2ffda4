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
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/internal/preview"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
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
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	flags := command.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "Files with Foos, or - for standard input.")
	flags.StringVar(&o.observed, "observed", "", "Folder with YAML or JSON files of the objects that are there.")
	flags.StringVar(&o.image, "image", options.DefaultImage, "Image of the Pods, as the controller's flag -image.")
	return command
}

func (o *renderOptions) run() error {
	if len(o.files) == 0 {
		return errors.New("say which file: -f FILE, or -f - for standard input")
	}
	foos, err := readFoos(o.files, o.In)
	if err != nil {
		return err
	}
	table := preview.Table(o.image)
	world, err := o.world(table)
	if err != nil {
		return err
	}
	for _, foo := range foos {
		if foo.Namespace == "" {
			foo.Namespace = metav1.NamespaceDefault
		}
		foo.Generation = max(foo.Generation, 1)
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
			if err := printObject(o.Out, write.After); err != nil {
				return err
			}
		}
	}
	foo := &samplev1alpha1.Foo{ObjectMeta: sync.Foo.ObjectMeta, Spec: sync.Foo.Spec, Status: sync.Status}
	return printObject(o.Out, foo)
}

// world reads the objects of the folder. Those of other kinds than children are skipped: a
// folder may hold the whole of a namespace.
func (o *renderOptions) world(table []preview.Row) (*preview.World, error) {
	world := preview.NewWorld()
	if o.observed == "" {
		return world, nil
	}
	files, err := yamlFiles(o.observed)
	if err != nil {
		return nil, err
	}
	documents, err := readDocuments(files, nil)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		if err := addObserved(world, table, d); err != nil {
			return nil, err
		}
	}
	return world, nil
}

// addObserved adds the object of a document, or those of its list.
func addObserved(world *preview.World, table []preview.Row, d document) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`

		Items []map[string]any `json:"items"`
	}
	if err := yaml.Unmarshal(d.data, &head); err != nil {
		return d.fail(err)
	}
	if head.Items != nil {
		for _, item := range head.Items {
			data, err := yaml.Marshal(item)
			if err != nil {
				return d.fail(err)
			}
			if err := addObserved(world, table, document{d.file, d.line, data}); err != nil {
				return err
			}
		}
		return nil
	}
	i := slices.IndexFunc(table, func(row preview.Row) bool {
		return row.Kind == head.Kind && row.Resource.GroupVersion().String() == head.APIVersion
	})
	if i < 0 {
		return nil
	}
	object := table[i].Empty()
	if err := yaml.Unmarshal(d.data, object); err != nil {
		return d.fail(err)
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	world.Add(table[i].Resource, object)
	return nil
}

func yamlFiles(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: there are no .yaml, .yml or .json files in it", folder)
	}
	return files, err
}
