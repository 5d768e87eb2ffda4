// SPDX-License-Identifier: Apache-2.0

// What is installed before the first run, and the steps of each run.

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"example.com/sample-controller/conform/judge"
	"example.com/sample-controller/test/testcluster"
)

// clients reads and writes objects of any kind as the administrator.
type clients struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// install installs the definitions and further manifests, and starts the recorder.
func (r *runner) install(ctx context.Context) error {
	for _, path := range r.crds {
		if err := r.plane.Kubectl(ctx, "apply", "--server-side", "-f", path); err != nil {
			return err
		}
	}
	if len(r.crds) > 0 {
		if err := r.plane.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"); err != nil {
			return err
		}
	}
	for _, path := range r.settings.Manifests {
		flag := "-f"
		if found, _ := filepath.Glob(filepath.Join(path, "[kK]ustomization*")); len(found) > 0 {
			flag = "-k"
		}
		if err := r.plane.Kubectl(ctx, "apply", flag, path); err != nil {
			return err
		}
	}
	r.account = r.plane.Config
	if namespace, name, ok := strings.Cut(r.settings.ServiceAccount, "/"); ok {
		var err error
		if r.account, err = testcluster.ConfigOf(ctx, r.plane.Config, namespace, name); err != nil {
			return err
		}
		if err := r.letElect(ctx, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}); err != nil {
			return err
		}
	}
	client, err := dynamic.NewForConfig(r.plane.Config)
	if err != nil {
		return err
	}
	discovery := memory.NewMemCacheClient(r.plane.Kube.Discovery())
	r.clients = &clients{client, restmapper.NewDeferredDiscoveryRESTMapper(discovery)}
	if r.steps, err = r.readSteps(); err != nil {
		return err
	}
	if r.clusterWide {
		r.parallel = 1
	}
	r.recorder, err = newRecorder(ctx, r.plane.Kube.Discovery(), client, r.clusterWide)
	return err
}

// letElect lets the account elect a leader in any namespace, because each run has its own.
func (r *runner) letElect(ctx context.Context, account rbacv1.Subject) error {
	meta := metav1.ObjectMeta{Name: "conform-leases"}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{rbacv1.VerbAll},
	}}}
	if _, err := r.plane.Kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := r.plane.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{account},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	return err
}

// clientFor returns the client for the resource of an object, and the namespace that it is in: its own,
// otherwise that of the run, or none.
func (r *runner) clientFor(object *unstructured.Unstructured, run string) (client dynamic.ResourceInterface, namespace string, err error) {
	kind := object.GroupVersionKind()
	mapping, err := r.clients.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, "", err
	}
	resource := r.clients.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return resource, "", nil
	}
	namespace = cmp.Or(object.GetNamespace(), run)
	return resource.Namespace(namespace), namespace, nil
}

// readSteps makes a step of each file, of other writers' labels after the first, of the loss of
// the children, and of the deletion.
func (r *runner) readSteps() ([]step, error) {
	var steps []step
	for i, file := range r.objects {
		objects, err := r.readObjects(file)
		if err != nil {
			return nil, err
		}
		name := "create"
		if i > 0 {
			name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		}
		steps = append(steps, step{name, func(_ context.Context, tr *trial, done *judge.Step) error {
			for _, object := range objects {
				if err := tr.apply(object, done); err != nil {
					return err
				}
			}
			return nil
		}})
		if i == 0 {
			steps = append(steps, step{"label", func(_ context.Context, tr *trial, _ *judge.Step) error { return tr.mark() }})
		}
	}
	return append(steps, step{"lose", func(_ context.Context, tr *trial, _ *judge.Step) error { return tr.deleteChildren() }},
		step{"delete", func(_ context.Context, tr *trial, _ *judge.Step) error { return tr.deleteAll() }}), nil
}

// readObjects reads a file of one object or more in YAML or JSON. Those of a namespace lose it, unless
// the runs have the whole cluster.
func (r *runner) readObjects(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)+1)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err == nil && len(object.Object) > 0 {
			_, namespace, unknown := r.clientFor(object, namespacePrefix)
			r.clusterWide, err = r.clusterWide || namespace == "", unknown
			objects = append(objects, object)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
}

// judgeDefinitions judges the installed CustomResourceDefinitions.
func (r *runner) judgeDefinitions(ctx context.Context, results *judge.Results) error {
	if len(r.crds) == 0 {
		results.NotJudged(judge.Definition, "schema", "there is no -crd")
		return nil
	}
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	list, err := r.clients.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, crd := range list.Items {
		results.Judged(judge.Case{Level: judge.Definition, Fault: crd.GetName(), Name: "definition/" + crd.GetName()}, judge.JudgeDefinition(crd.Object))
	}
	return nil
}
