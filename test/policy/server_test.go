// SPDX-License-Identifier: Apache-2.0

// The API server of the tests: its admission plugin with the shipped policies.

package policy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install" // the defaults of policies
	_ "k8s.io/kubernetes/pkg/apis/core/install"                  // the namespace and the account
)

const (
	// permissions is the folder of the shipped policies and roles.
	permissions = "../../artifacts/deploy/permissions"
	// imageAnnotation is the annotation of the controller's account with the Pods' image.
	imageAnnotation = "samplecontroller.k8s.io/image"
	// namespace is that of the Foos.
	namespace = "team-a"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false) // the plugin logs each start
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// object is an object of the Kubernetes API.
type object interface {
	metav1.Object
	runtime.Object
}

// server judges writes as the admission of an API server does that has the shipped
// policies.
type server struct {
	plugin  *validating.Plugin
	account user.Info
}

// newServer returns a server for a controller that runs with an image, or with the
// shipped one if that is "".
func newServer(t *testing.T, image string) *server {
	t.Helper()
	return newServerWith(t, image, shipped(t))
}

// newServerWith returns a server with an account and policies.
func newServerWith(t *testing.T, image string, installedObjects []object) *server {
	t.Helper()
	objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	s := &server{}
	for _, installed := range installedObjects {
		legacyscheme.Scheme.Default(installed)
		if account, ok := installed.(*corev1.ServiceAccount); ok {
			s.account = serviceaccount.UserInfo(account.Namespace, account.Name, "")
			if image != "" {
				account.Annotations[imageAnnotation] = image
			}
		}
		objects = append(objects, installed)
	}
	if s.account == nil {
		t.Fatalf("%s has no service account", permissions)
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	var err error
	s.plugin, err = validating.NewPlugin(nil)
	must(t, err)
	s.plugin.SetExternalKubeInformerFactory(factory)
	s.plugin.SetExternalKubeClientSet(client)
	s.plugin.SetDynamicClient(dynamicfake.NewSimpleDynamicClient(legacyscheme.Scheme))
	s.plugin.SetRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(legacyscheme.Scheme))
	s.plugin.SetUnconditionalAuthorizer(authorizerfactory.NewAlwaysDenyAuthorizer())
	s.plugin.SetDrainedNotification(t.Context().Done())
	// The plugin gives the informer of the policies' parameter a second to fill, which is
	// not enough on a busy machine. It uses the one of the factory.
	factory.Core().V1().ServiceAccounts().Informer()
	must(t, s.plugin.ValidateInitialization())
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSyncWithContext(t.Context())
	must(t, wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return s.plugin.WaitForReady(), nil
	}))
	return s
}

// shipped returns the objects of the folder of permissions.
func shipped(t *testing.T) []object {
	t.Helper()
	files, err := filepath.Glob(permissions + "/*.yaml")
	must(t, err)
	var objects []object
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		objects = append(objects, decode(text)...)
	}
	return objects
}

// decode returns the objects in a file, without kustomize's.
func decode(text []byte) []object {
	var objects []object
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		if decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil); err == nil {
			objects = append(objects, decoded.(object))
		}
	}
	return objects
}

func (s *server) create(t *testing.T, sent object) error {
	t.Helper()
	sent = sent.DeepCopyObject().(object)
	sent.SetUID("uid-new") // set before admission
	sent.SetGeneration(1)
	sent.SetCreationTimestamp(metav1.Now())
	sent.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "sample-controller"}})
	return s.judge(t, admission.Create, sent, nil, &metav1.CreateOptions{})
}

func (s *server) update(t *testing.T, stored, sent object) error {
	t.Helper()
	return s.judge(t, admission.Update, sent, stored, &metav1.UpdateOptions{})
}

// patch judges an object that a patch has made of the stored one: to admission it is an
// update with other options.
func (s *server) patch(t *testing.T, stored, patched object) error {
	t.Helper()
	return s.judge(t, admission.Update, patched, stored, &metav1.PatchOptions{})
}

func (s *server) delete(t *testing.T, stored object, propagation metav1.DeletionPropagation) error {
	t.Helper()
	return s.judge(t, admission.Delete, nil, stored, &metav1.DeleteOptions{PropagationPolicy: &propagation})
}

// judge returns the error that refuses a write of the controller's account, or nil.
func (s *server) judge(t *testing.T, operation admission.Operation, sent, stored object, options runtime.Object) error {
	t.Helper()
	of := sent
	if of == nil {
		of = stored
	}
	kind := kindOf(t, of)
	owner := ownerOf(resourceOf(kind))
	sent, stored = ownedBy(owner, sent), ownedBy(owner, stored)
	return ofFoos(owner, s.plugin.Validate(t.Context(), admission.NewAttributesRecord(internal(t, sent), internal(t, stored), kind,
		of.GetNamespace(), of.GetName(), resourceOf(kind), "", operation, options, false, s.account),
		admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)))
}

// internal returns an object with the API server's defaults, as its internal version.
func internal(t *testing.T, of object) runtime.Object {
	t.Helper()
	if of == nil {
		return nil
	}
	defaulted := of.DeepCopyObject()
	legacyscheme.Scheme.Default(defaulted)
	converted, err := legacyscheme.Scheme.ConvertToVersion(defaulted, runtime.InternalGroupVersioner)
	must(t, err)
	return converted
}

// stored returns an object as the API server stores it: with the defaults, and without
// what its internal version does not have.
func stored[T object](t *testing.T, of T) T {
	t.Helper()
	converted, err := legacyscheme.Scheme.ConvertToVersion(internal(t, of), kindOf(t, of).GroupVersion())
	must(t, err)
	converted.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return converted.(T)
}

func kindOf(t *testing.T, of runtime.Object) schema.GroupVersionKind {
	t.Helper()
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(of)
	must(t, err)
	return kinds[0]
}

func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("the test: %w", err))
	}
}
