// What a Website does when the objects that it names change, with fake clientsets.

package main

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/acme/internal/kinds"
	api "example.com/acme/pkg/apis/acme/v1alpha1"
	customfake "example.com/acme/pkg/generated/clientset/versioned/fake"
	informers "example.com/acme/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/table"
)

// syncWebsite syncs the Website "web" in the namespace "team" beside other objects. It returns the Website and its
// Deployment after that.
func syncWebsite(t *testing.T, website *api.Website, others ...runtime.Object) (*api.Website, *appsv1.Deployment) {
	t.Helper()
	kube, custom := kubefake.NewClientset(others...), customfake.NewClientset(website)
	clients := kinds.Clients{
		Kube: kube, Custom: custom, KubeInformers: kubeinformers.NewSharedInformerFactory(kube, 0), CustomInformers: informers.NewSharedInformerFactory(custom, 0),
		MetadataInformers: metadatainformer.NewSharedInformerFactory(nil, 0), // not started: a sync reads the objects live
	}
	all := kinds.All(clients, kinds.Options{Image: "nginx:1.29"})
	if err := table.Prepare(all...); err != nil {
		t.Fatal(err)
	}
	websites := all[slices.IndexFunc(all, func(kind *table.Kind) bool { return kind.Name == "Website" })]
	controller := NewController(Config{
		Name: "websites", Recorder: record.NewFakeRecorder(10), Clock: clocktesting.NewFakeClock(time.Now()), CallTimeout: time.Minute, Metrics: metrics.New("websites", "Website"),
	}, websites)
	clients.KubeInformers.StartWithContext(t.Context())
	clients.CustomInformers.StartWithContext(t.Context())
	clients.KubeInformers.WaitForCacheSyncWithContext(t.Context())
	clients.CustomInformers.WaitForCacheSyncWithContext(t.Context())
	if _, err := controller.syncHandler(t.Context(), cache.ObjectName{Namespace: "team", Name: "web"}); err != nil {
		t.Fatal(err)
	}
	website, err := custom.AcmeV1alpha1().Websites("team").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := kube.AppsV1().Deployments("team").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return website, deployment
}

func secretOf(key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}, Data: map[string][]byte{key: []byte(value)}}
}

func settingsOf(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}, Data: map[string]string{"greeting": value}}
}

func TestPodsRollWhenWhatTheWebsiteNamesChanges(t *testing.T) {
	website := &api.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "1", Generation: 1},
		Spec:       api.WebsiteSpec{Replicas: new(int32(1)), Secret: "web", Settings: "web"},
	}
	website, deployment := syncWebsite(t, website, secretOf("password", "a"), settingsOf("Hello"))
	first := deployment.Spec.Template.DeepCopy()
	expectRolled := func(say string, want bool) {
		t.Helper()
		if got := !slices.Equal(digestsOf(first), digestsOf(&deployment.Spec.Template)); got != want {
			t.Errorf("%s: the Pods roll: %v, want %v", say, got, want)
		}
		first = deployment.Spec.Template.DeepCopy()
	}
	expectReason := func(want string) {
		t.Helper()
		if ready := meta.FindStatusCondition(website.Status.Conditions, "Ready"); ready == nil || ready.Reason != want {
			t.Errorf("Ready is %+v, want the reason %s", ready, want)
		}
	}
	expectReason("Progressing")
	website, deployment = syncWebsite(t, website, deployment, secretOf("password", "b"), settingsOf("Hello"))
	expectRolled("another password", true)
	website, deployment = syncWebsite(t, website, deployment, secretOf("password", "b"), settingsOf("Good day"))
	expectRolled("other settings", true)
	website, deployment = syncWebsite(t, website, deployment, secretOf("password", "b"), settingsOf("Good day"))
	expectRolled("at rest", false)

	website.Spec.Replicas = new(int32(2))
	website, deployment = syncWebsite(t, website, deployment, settingsOf("Good day"))
	expectRolled("no Secret", false)
	expectReason("SecretMissing")
	if *deployment.Spec.Replicas != 2 {
		t.Error("without the Secret, the Website is not scaled")
	}
	website, deployment = syncWebsite(t, website, deployment, secretOf("pasword", "b"), settingsOf("Good day"))
	expectReason("SecretFailed")

	website.Spec.Settings = ""
	_, deployment = syncWebsite(t, website, deployment, secretOf("password", "b"))
	if len(deployment.Spec.Template.Annotations) != 1 || len(deployment.Spec.Template.Spec.Containers[0].EnvFrom) != 1 {
		t.Errorf("the settings are still in %+v", deployment.Spec.Template)
	}
}

func digestsOf(template *corev1.PodTemplateSpec) []string {
	return []string{template.Annotations["acme.dev/secret"], template.Annotations["acme.dev/settings"]}
}
