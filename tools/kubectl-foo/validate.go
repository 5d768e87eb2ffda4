// SPDX-License-Identifier: Apache-2.0

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

	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/kubectl-foo/internal/manifest"
	"example.com/sample-controller/tools/kubectl-foo/internal/schema"
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
	objects, err := manifest.Read(o.files, o.In)
	if err != nil {
		return err
	}
	stored, err := o.stored()
	if err != nil {
		return err
	}
	v, err := schema.New()
	if err != nil {
		return err
	}
	invalid := 0
	for _, object := range objects {
		setNamespace(object.Unstructured)
		if old := stored[keyOf(object.Unstructured)]; old != nil {
			_, err = v.Update(ctx, object.Unstructured, old)
		} else {
			_, err = v.Create(ctx, object.Unstructured)
		}
		for _, problem := range problemsIn(object, err) {
			invalid++
			fmt.Fprintln(o.ErrOut, printable.Quote(problem.Error()))
		}
	}
	if invalid > 0 {
		return fmt.Errorf("%s in %s", count(invalid, "problem", "problems"), count(len(objects), "object", "objects"))
	}
	_, err = fmt.Fprintf(o.Out, "Valid: %s.\n", count(len(objects), "Foo", "Foos"))
	return err
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// stored returns the Foos that are stored, by namespace and name.
func (o *validateOptions) stored() (map[string]*unstructured.Unstructured, error) {
	stored := map[string]*unstructured.Unstructured{}
	if len(o.old) == 0 {
		return stored, nil
	}
	objects, err := manifest.Read(o.old, o.In)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		setNamespace(object.Unstructured)
		stored[keyOf(object.Unstructured)] = object.Unstructured
	}
	return stored, nil
}

// setNamespace sets a namespace that is missing.
func setNamespace(object *unstructured.Unstructured) {
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
}

func keyOf(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

// problemsIn returns what the API server says of an object, each with the line of its
// field.
func problemsIn(object manifest.Object, err error) []error {
	if err == nil {
		return nil
	}
	var problems []error
	if unknown := (*schema.UnknownFieldsError)(nil); errors.As(err, &unknown) {
		for _, path := range unknown.Paths {
			problems = append(problems, object.Fail(path, fmt.Errorf("unknown field %q", path)))
		}
		return problems
	}
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			problems = append(problems, object.Fail(cause.Field, fmt.Errorf("%s: %s", cause.Field, cause.Message)))
		}
	}
	if len(problems) == 0 {
		problems = append(problems, object.Fail("", err))
	}
	return problems
}
