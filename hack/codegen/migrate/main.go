// SPDX-License-Identifier: Apache-2.0

// Command migrate moves the objects of a kind from one version of its API to another,
// without a conversion webhook, in steps that can be taken back until the old version goes.
// README.md shows it.
//
//	migrate status
//	migrate next [-through=STEP] [-clients-have-moved]
//	migrate back -clients-have-moved
//	migrate print STAGE|policy
//	migrate generate RAW
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/hack/codegen/migrate/internal/shape"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "migrate: %v\n", err)
		os.Exit(1)
	}
}

// options are the flags of all commands.
type options struct {
	root, crd, kubeconfig, through string
	clientsMoved                   bool
	settle                         time.Duration
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("migrate", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "the project's root")
	flags.StringVar(&o.crd, "crd", "", "the CustomResourceDefinition, if the project declares several")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig; by default the one that kubectl uses")
	flags.StringVar(&o.through, "through", "", "next: do all steps up to and including this one")
	flags.BoolVar(&o.clientsMoved, "clients-have-moved", false, "next, back: no client uses the version that goes")
	flags.DurationVar(&o.settle, "settle", 10*time.Second, "how long to wait until all API servers know a new definition or policy")
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		flags.Usage()
		return errors.New("name a command: status, next, back, print or generate")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	operand := flags.Arg(0)
	if flags.NArg() > 1 { // flags may follow it
		if err := flags.Parse(flags.Args()[1:]); err != nil {
			return err
		}
	}
	if args[0] == "generate" {
		return generate(o.root, operand)
	}
	d, raw, err := read(o.root, o.crd)
	if err != nil {
		return err
	}
	if args[0] == "print" {
		return printManifest(d, raw, operand, out)
	}
	m, err := connect(d, raw, o, out)
	if err != nil {
		return err
	}
	switch args[0] {
	case "status":
		return m.status(ctx)
	case "next":
		return m.next(ctx, o.through, o.clientsMoved)
	case "back":
		return m.back(ctx, o.clientsMoved)
	}
	return fmt.Errorf("the command %q is unknown: use status, next, back, print or generate", args[0])
}

// declarations returns those of the project.
func declarations(root string) (all []*shape.Declaration, err error) {
	files, err := filepath.Glob(filepath.Join(root, "pkg/apis/*/versions.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := shape.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// read returns the declaration of a kind, and its CustomResourceDefinition as generated.
func read(root, name string) (*shape.Declaration, *apiextensionsv1.CustomResourceDefinition, error) {
	all, err := declarations(root)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
		if d.Name == name || name == "" && len(all) == 1 {
			if d.Conversion != "" {
				return nil, nil, fmt.Errorf("%s is converted by a webhook: its objects can be moved with a StorageVersionMigration of Kubernetes", d.Name)
			}
			raw, err := readCRD(filepath.Join(root, rawFile(d)))
			if err == nil {
				err = d.Check(raw)
			}
			return d, raw, err
		}
	}
	if len(all) == 0 {
		return nil, nil, errors.New("no file pkg/apis/GROUP/versions.yaml declares what differs between two versions: see hack/codegen/migrate/README.md")
	}
	return nil, nil, fmt.Errorf("pkg/apis/GROUP/versions.yaml declares %s: choose one with -crd", strings.Join(names, ", "))
}

// rawFile is where the CustomResourceDefinition is as controller-gen makes it.
func rawFile(d *shape.Declaration) string {
	return filepath.Join("artifacts/versions", d.Group()+"_"+d.Resource()+".yaml")
}

func readCRD(path string) (*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &crd, nil
}

// generate checks the versions of all kinds, and makes the manifests of a release that serves both
// versions that are declared. raw is the directory with what controller-gen made.
func generate(root, raw string) error {
	made, err := filepath.Glob(filepath.Join(raw, "*_*.yaml"))
	if err != nil {
		return err
	}
	all, err := declarations(root)
	if err != nil {
		return err
	}
	policies := []any{}
	for _, path := range made {
		crd, err := readCRD(path)
		if err != nil {
			return err
		}
		if len(crd.Spec.Versions) == 1 {
			continue
		}
		d := declarationOf(all, crd.Name)
		if err := checkVersions(d, crd); err != nil {
			return err
		}
		if d == nil || d.Conversion != "" {
			continue // the definition stays as it is
		}
		expanded, err := d.CRD(crd, shape.Expanded)
		if err != nil {
			return err
		}
		if len(d.Changes) > 0 {
			policies = append(policies, d.SyncPolicy(), shape.Binding(d.SyncPolicy()))
		}
		if err := errors.Join(write(filepath.Join(root, rawFile(d)), crd), write(filepath.Join(root, "artifacts/crd", filepath.Base(path)), expanded)); err != nil {
			return err
		}
	}
	if len(policies) == 0 {
		return nil
	}
	return write(filepath.Join(root, "artifacts/versions/policy.yaml"), policies...)
}

// declarationOf returns the declaration of a CustomResourceDefinition, or nil.
func declarationOf(all []*shape.Declaration, name string) *shape.Declaration {
	for _, d := range all {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// checkVersions returns an error unless the versions of a kind can be served together as d declares, or without a
// declaration if d is nil.
func checkVersions(d *shape.Declaration, crd *apiextensionsv1.CustomResourceDefinition) (err error) {
	switch {
	case d == nil:
		return shape.CheckUndeclared(crd)
	case d.Conversion != "":
		err = d.CheckConversion()
	default:
		err = d.Check(crd)
	}
	if err != nil {
		return fmt.Errorf("%s, as pkg/apis/GROUP/versions.yaml declares it: %w", crd.Name, err)
	}
	return nil
}

func write(path string, objects ...any) error {
	var text bytes.Buffer
	if err := encode(&text, objects...); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

func encode(out io.Writer, objects ...any) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "---\n%s", text)
	}
	return nil
}

func printManifest(d *shape.Declaration, raw *apiextensionsv1.CustomResourceDefinition, name string, out io.Writer) error {
	if name == "policy" {
		return encode(out, d.SyncPolicy(), shape.Binding(d.SyncPolicy()))
	}
	stage, err := shape.ParseStage(name)
	if err != nil {
		return err
	}
	crd, err := d.CRD(raw, stage)
	if err != nil {
		return err
	}
	return encode(out, crd)
}

func connect(d *shape.Declaration, raw *apiextensionsv1.CustomResourceDefinition, o options, out io.Writer) (*migration, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // of the old version, which it has to read
	config.QPS, config.Burst = 100, 200       // it reads each resource of the cluster
	crds, err := apiextensionsclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	m := &migration{Declaration: d, raw: raw, crds: crds.CustomResourceDefinitions(), out: out, settle: o.settle}
	if m.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	m.discover = m.kube.Discovery()
	if m.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	m.metadata, err = metadata.NewForConfig(config)
	return m, err
}
