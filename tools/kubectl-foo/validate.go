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

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"
)

const validateHelp = `Print what the API server would say of the Foos in files.

The command needs no cluster. It judges by the CustomResourceDefinition of this build and with the API server's own
code: unknown fields, types, bounds, and the rules between fields. With --old it judges an update: rules about changes
compare with the Foo of the same name there. What depends on a cluster is not judged: quotas, webhooks, policies.

Exit code: 0 if all are valid, 2 if not.`

// validateOptions are the flags of validate.
type validateOptions struct {
	genericiooptions.IOStreams

	files []string
	old   []string
}

func newValidateCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &validateOptions{IOStreams: streams}
	command := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "Print what the API server would say of the Foos in files",
		Long:  validateHelp,
		Example: `  kubectl foo validate -f foo.yaml
  kubectl get foos -o yaml | kubectl foo validate -f new.yaml --old -`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "Files with Foos, or - for standard input.")
	flags.StringSliceVar(&o.old, "old", nil, "Files with the Foos that are stored.")
	return command
}

func (o *validateOptions) run(ctx context.Context) error {
	if len(o.files) == 0 {
		return errors.New("say which file: -f FILE, or -f - for standard input")
	}
	documents, err := readDocuments(o.files, o.In)
	if err != nil {
		return err
	}
	stored, err := readStored(o.old, o.In)
	if err != nil {
		return err
	}
	v, err := newValidator()
	if err != nil {
		return err
	}
	invalid := 0
	for _, d := range documents {
		for _, problem := range judge(ctx, v, d, stored) {
			invalid++
			fmt.Fprintln(o.ErrOut, problem)
		}
	}
	if invalid > 0 {
		return fmt.Errorf("%d problems in %d documents", invalid, len(documents))
	}
	_, err = fmt.Fprintf(o.Out, "%d Foos are valid.\n", len(documents))
	return err
}

// judge returns what the API server would say of a document, with file and line.
func judge(ctx context.Context, v *validator, d document, stored map[string]*unstructured.Unstructured) []string {
	object, err := decode(d.data)
	if err != nil {
		return []string{d.fail(err).Error()}
	}
	if old := stored[keyOf(object)]; old != nil {
		_, err = v.update(ctx, object, old)
	} else {
		_, err = v.create(ctx, object)
	}
	return d.problems(err)
}

// problems returns an error as lines, each with the line of its field.
func (d document) problems(err error) []string {
	if err == nil {
		return nil
	}
	var lines []string
	if unknown := (*unknownFields)(nil); errors.As(err, &unknown) {
		for _, path := range unknown.paths {
			lines = append(lines, fmt.Sprintf("%s:%d: unknown field %q", d.file, d.lineOf(path), path))
		}
		return lines
	}
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			lines = append(lines, fmt.Sprintf("%s:%d: %s: %s", d.file, d.lineOf(cause.Field), cause.Field, cause.Message))
		}
	}
	if len(lines) == 0 {
		lines = append(lines, d.fail(err).Error())
	}
	return lines
}

// readStored returns the Foos of files by namespace and name. A list counts as its items.
func readStored(files []string, in interface{ Read([]byte) (int, error) }) (map[string]*unstructured.Unstructured, error) {
	stored := map[string]*unstructured.Unstructured{}
	documents, err := readDocuments(files, in)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		object, err := decode(d.data)
		if err != nil {
			return nil, d.fail(err)
		}
		if !object.IsList() {
			stored[keyOf(object)] = object
			continue
		}
		list, err := object.ToList()
		if err != nil {
			return nil, d.fail(err)
		}
		for i := range list.Items {
			stored[keyOf(&list.Items[i])] = &list.Items[i]
		}
	}
	return stored, nil
}

// decode reads an object. One without a namespace is in "default".
func decode(data []byte) (*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if !object.IsList() && object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return object, nil
}

func keyOf(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}
