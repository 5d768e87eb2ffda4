// SPDX-License-Identifier: Apache-2.0

// The API server of the tests: its admission plugin with the shipped policies; attempts
// that are the same for each kind.

package policy

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
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

	// The defaults of all that a Foo may own.
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

const (
	// imageAnnotation is the annotation of the controller's account with the Pods' image.
	imageAnnotation = "samplecontroller.k8s.io/image"
	// shippedImage is the image of the shipped service account.
	shippedImage = "nginx:latest"
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
	footest.Must(t, err)
	s.plugin.SetExternalKubeInformerFactory(factory)
	s.plugin.SetExternalKubeClientSet(client)
	s.plugin.SetDynamicClient(dynamicfake.NewSimpleDynamicClient(legacyscheme.Scheme))
	s.plugin.SetRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(legacyscheme.Scheme))
	s.plugin.SetUnconditionalAuthorizer(authorizerfactory.NewAlwaysDenyAuthorizer())
	s.plugin.SetDrainedNotification(t.Context().Done())
	// The plugin gives the informer of the policies' parameter a second to fill, which is
	// not enough on a busy machine. It uses the one of the factory.
	factory.Core().V1().ServiceAccounts().Informer()
	footest.Must(t, s.plugin.ValidateInitialization())
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSyncWithContext(t.Context())
	footest.Must(t, wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return s.plugin.WaitForReady(), nil
	}))
	return s
}

// shipped returns the objects of the directory of permissions.
func shipped(t *testing.T) []object {
	t.Helper()
	paths, err := filepath.Glob(permissions + "/*.yaml")
	footest.Must(t, err)
	var objects []object
	for _, path := range paths {
		text, err := os.ReadFile(path)
		footest.Must(t, err)
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
	return s.plugin.Validate(t.Context(), admission.NewAttributesRecord(internal(t, sent), internal(t, stored), kind,
		of.GetNamespace(), of.GetName(), resourceOf(kind), "", operation, options, false, s.account),
		admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme))
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
	footest.Must(t, err)
	return converted
}

// stored returns an object as the API server stores it: with the defaults, and without
// what its internal version does not have.
func stored[T object](t *testing.T, of T) T {
	t.Helper()
	converted, err := legacyscheme.Scheme.ConvertToVersion(internal(t, of), kindOf(t, of).GroupVersion())
	footest.Must(t, err)
	converted.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return converted.(T)
}

func kindOf(t *testing.T, of runtime.Object) schema.GroupVersionKind {
	t.Helper()
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(of)
	footest.Must(t, err)
	return kinds[0]
}

func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource
}

// Parts of the policies' messages that all kinds have.
const (
	onlyForAFoo = "only with a Foo as its controller and only owner"
	onlyAFoos   = "that a Foo controls, and not its owners"
	finalizers  = "its writes: metadata.finalizers"
	annotations = "its writes: metadata.annotations["
)

// What the controller does itself, and the policy must accept, are cases of the other tests.
var anyCreates = []attempt[object]{
	{"no owner", changeOwners(func([]metav1.OwnerReference) []metav1.OwnerReference { return nil }), onlyForAFoo},
	{"a Foo that is not the controller", changeOwner(0, func(r *metav1.OwnerReference) { r.Controller = new(false) }), onlyForAFoo},
	{"an owner of another kind", changeOwner(0, func(r *metav1.OwnerReference) { r.APIVersion, r.Kind = "v1", "ConfigMap" }), onlyForAFoo},
	{"a Foo of another group", changeOwner(0, func(r *metav1.OwnerReference) { r.APIVersion = "other.example.com/v1alpha1" }), onlyForAFoo},
	{"one more owner", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		return append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "uid-other"})
	}), onlyForAFoo},
	{"a finalizer", finalize, finalizers},
	{"a consent to adoption", func(o object) { o.SetAnnotations(map[string]string{samplev1alpha1.AnnotationAdoptBy: "foo"}) }, annotations},
}

var anyUpdates = []attempt[object]{
	{"the owner, removed", changeOwners(func([]metav1.OwnerReference) []metav1.OwnerReference { return nil }), onlyAFoos},
	{"the owner, in another version of the API", changeOwner(0, func(r *metav1.OwnerReference) { r.APIVersion = "samplecontroller.k8s.io/v9" }), onlyAFoos},
	{"the owner, recreated", changeOwner(0, func(r *metav1.OwnerReference) { r.UID = "uid-other" }), onlyAFoos},
	{"the consent to adoption, removed", func(o object) { delete(o.GetAnnotations(), samplev1alpha1.AnnotationAdoptBy) }, annotations},
	{"a finalizer", finalize, finalizers},
}

// The owners are the ConfigMap, bar, and at last foo as the controller.
var anyAdoptions = []attempt[object]{
	{"without removing the consent", annotate(samplev1alpha1.AnnotationAdoptBy, "foo"), ""},
	{"with the consent for another Foo", annotate(samplev1alpha1.AnnotationAdoptBy, "bar"), annotations},
	{"without becoming its controller", changeOwner(2, func(r *metav1.OwnerReference) { r.Controller = nil }), onlyAFoos},
	{"without the ConfigMap", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference { return owners[1:] }), onlyAFoos},
	{"without the other Foo", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		return slices.Delete(owners, 1, 2)
	}), onlyAFoos},
	{"with the ConfigMap changed", changeOwner(0, func(r *metav1.OwnerReference) { r.Name = "another" }), onlyAFoos},
	{"beside its earlier reference", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		earlier := owners[2]
		earlier.Controller = nil
		return append([]metav1.OwnerReference{earlier}, owners...)
	}), onlyAFoos},
	{"for another Foo", changeOwner(2, func(r *metav1.OwnerReference) { r.Name = "bar" }), onlyAFoos},
	{"for a Foo with the ConfigMap's UID, in its place", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		owners[2].UID = "uid-other"
		return owners[1:]
	}), onlyAFoos},
	{"in another version of the API", changeOwner(2, func(r *metav1.OwnerReference) { r.APIVersion = "samplecontroller.k8s.io/v9" }), onlyAFoos},
	{"without others' annotation", func(o object) { delete(o.GetAnnotations(), "team") }, annotations},
	{"without all annotations", func(o object) { o.SetAnnotations(nil) }, annotations},
	{"with one more annotation", annotate("inject", "yes"), ""},
	{"with a label", label, ""},
}

func changeOwners(change func([]metav1.OwnerReference) []metav1.OwnerReference) func(object) {
	return func(o object) { o.SetOwnerReferences(change(slices.Clone(o.GetOwnerReferences()))) }
}

func changeOwner(index int, change func(*metav1.OwnerReference)) func(object) {
	return changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		change(&owners[index])
		return owners
	})
}

func annotate(key, value string) func(object) {
	return func(o object) { o.GetAnnotations()[key] = value }
}

func label(o object) { o.SetLabels(map[string]string{"team": "red"}) }

func finalize(o object) { o.SetFinalizers([]string{"example.com/hold"}) }
