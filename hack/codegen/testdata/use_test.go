// Package use uses the generated clients of all kinds in the same way: the fake ones and those of a
// cluster whose kubeconfig CLUSTER names.
package use

import (
	"context"
	"os"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	certsv1 "example.com/sample-controller/pkg/apis/certs/v1"
	databasev1 "example.com/sample-controller/pkg/apis/database/v1"
	gatewayv1beta1 "example.com/sample-controller/pkg/apis/gateway/v1beta1"
	sharedv1 "example.com/sample-controller/pkg/apis/meta/v1"
	monitoringv1 "example.com/sample-controller/pkg/apis/monitoring/v1"
	tenancyv1 "example.com/sample-controller/pkg/apis/tenancy/v1"
	workloadv1alpha1 "example.com/sample-controller/pkg/apis/workload/v1alpha1"
	certsac "example.com/sample-controller/pkg/generated/applyconfiguration/certs/v1"
	databaseac "example.com/sample-controller/pkg/generated/applyconfiguration/database/v1"
	gatewayac "example.com/sample-controller/pkg/generated/applyconfiguration/gateway/v1beta1"
	monitoringac "example.com/sample-controller/pkg/generated/applyconfiguration/monitoring/v1"
	tenancyac "example.com/sample-controller/pkg/generated/applyconfiguration/tenancy/v1"
	workloadac "example.com/sample-controller/pkg/generated/applyconfiguration/workload/v1alpha1"
	"example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/pkg/generated/clientset/versioned/fake"
)

// client is what the clients of all kinds have. T and L are the kind and its list, A is the kind's
// apply configuration.
type client[T, L, A any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Apply(context.Context, A, metav1.ApplyOptions) (T, error)
}

// withStatus is what the clients of kinds with a status have besides.
type withStatus[T, A any] interface {
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
	ApplyStatus(context.Context, A, metav1.ApplyOptions) (T, error)
}

type object interface {
	runtime.Object
	metav1.Object
}

// use calls each method of a client. setStatus changes the status of an object, and stored reports
// whether it, and the labels of its templates, were stored; both are nil for a kind without a status.
// applied and status are apply configurations of an object "applied".
func use[T object, L runtime.Object, A any](t *testing.T, c client[T, L, A], o T, setStatus func(T), stored func(T) bool, applied, status A) {
	t.Helper()
	ctx := t.Context()
	must := func(result T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	o.SetName("created")
	o.SetLabels(map[string]string{"app": "created"})
	watcher, err := c.Watch(ctx, metav1.ListOptions{LabelSelector: "app=created"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	o = must(c.Create(ctx, o, metav1.CreateOptions{}))
	if event := <-watcher.ResultChan(); event.Type != watch.Added || event.Object.(T).GetName() != "created" {
		t.Errorf("the watch delivers %v %v", event.Type, event.Object)
	}
	o.SetAnnotations(map[string]string{"updated": "yes"})
	o = must(c.Update(ctx, o, metav1.UpdateOptions{}))
	must(c.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "spec"}))
	if setStatus != nil {
		s := any(c).(withStatus[T, A])
		setStatus(o)
		must(s.UpdateStatus(ctx, o, metav1.UpdateOptions{}))
		if got := must(c.Get(ctx, "created", metav1.GetOptions{})); !stored(got) || got.GetAnnotations()["updated"] != "yes" {
			t.Errorf("after the updates: %v", got)
		}
		if got := must(s.ApplyStatus(ctx, status, metav1.ApplyOptions{FieldManager: "status"})); !stored(got) {
			t.Errorf("after the status was applied: %v", got)
		}
	}
	for selector, want := range map[string]int{"app=created": 1, "app=applied": 1, "app": 2, "app=other": 0} {
		if list, err := c.List(ctx, metav1.ListOptions{LabelSelector: selector}); err != nil || meta.LenList(list) != want {
			t.Errorf("%s selects %v (%v), want %d objects", selector, list, err, want)
		}
	}
	for _, name := range []string{"created", "applied"} {
		if err := c.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestFake(t *testing.T) { useAll(t, fake.NewClientset()) }

func TestCluster(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("CLUSTER"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c := versioned.NewForConfigOrDie(config)
	useAll(t, c)

	redis := c.DatabaseV1().Redis("default")
	_, err = redis.Create(t.Context(), &databasev1.Redis{ObjectMeta: metav1.ObjectMeta{Name: "scaled"}, Spec: databasev1.RedisSpec{Replicas: ptr.To(int32(1)), Template: template}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale, err := redis.GetScale(t.Context(), "scaled", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 3
	if _, err := redis.UpdateScale(t.Context(), "scaled", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := redis.Get(t.Context(), "scaled", metav1.GetOptions{}); err != nil || *got.Spec.Replicas != 3 {
		t.Errorf("scaled to %v (%v), want 3", got, err)
	}
}

var template = corev1.PodTemplateSpec{
	ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"in": "template"}},
	Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
}

func useAll(t *testing.T, c versioned.Interface) {
	const ns = "default"
	labels := map[string]string{"app": "applied"}
	isTemplate := func(o metav1.ObjectMeta) bool { return o.Labels["in"] == "template" }

	job := workloadv1alpha1.ReplicatedJob{Name: "j", Template: batchv1.JobTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: batchv1.JobSpec{Template: template}}}
	use(t, c.WorkloadV1alpha1().JobGroups(ns), &workloadv1alpha1.JobGroup{Spec: workloadv1alpha1.JobGroupSpec{Jobs: []workloadv1alpha1.ReplicatedJob{job}}},
		func(o *workloadv1alpha1.JobGroup) { o.Status.Ready = map[string]int32{"j": 1} },
		func(o *workloadv1alpha1.JobGroup) bool {
			job := o.Spec.Jobs[0].Template
			return o.Status.Ready["j"] == 1 && isTemplate(job.ObjectMeta) && isTemplate(job.Spec.Template.ObjectMeta)
		},
		workloadac.JobGroup("applied", ns).WithLabels(labels).WithSpec(workloadac.JobGroupSpec().WithJobs(workloadac.ReplicatedJob().WithName("a").WithReplicas(1).WithTemplate(job.Template))),
		workloadac.JobGroup("applied", ns).WithStatus(workloadac.JobGroupStatus().WithReady(map[string]int32{"j": 1})))

	claim := corev1.PersistentVolumeClaim{ObjectMeta: template.ObjectMeta}
	use(t, c.DatabaseV1().Redis(ns), &databasev1.Redis{Spec: databasev1.RedisSpec{Template: template, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim}}},
		func(o *databasev1.Redis) { o.Status.Replicas = 1 },
		func(o *databasev1.Redis) bool {
			return o.Status.Replicas == 1 && isTemplate(o.Spec.Template.ObjectMeta) && isTemplate(o.Spec.VolumeClaimTemplates[0].ObjectMeta)
		},
		databaseac.Redis("applied", ns).WithLabels(labels).WithSpec(databaseac.RedisSpec().WithTemplate(template).WithVolumeClaimTemplates(claim)),
		databaseac.Redis("applied", ns).WithStatus(databaseac.RedisStatus().WithReplicas(1)))

	use(t, c.EdgeGatewayV1beta1().Meshwork(ns), &gatewayv1beta1.Mesh{Spec: gatewayv1beta1.MeshSpec{Hosts: []gatewayv1beta1.Hostname{"a.example"}}},
		func(o *gatewayv1beta1.Mesh) { o.Status.Accepted = ptr.To(true) }, func(o *gatewayv1beta1.Mesh) bool { return *o.Status.Accepted },
		gatewayac.Mesh("applied", ns).WithLabels(labels).WithSpec(gatewayac.MeshSpec().WithHosts("b.example")),
		gatewayac.Mesh("applied", ns).WithStatus(gatewayac.MeshStatus().WithAccepted(true)))

	now, secret := metav1.NowMicro(), sharedv1.SecretRef{Name: "s"}
	use(t, c.CertsV1().Certificates(ns), &certsv1.Certificate{Spec: certsv1.CertificateSpec{Secret: secret}},
		func(o *certsv1.Certificate) { o.Status.NotAfter = &now }, func(o *certsv1.Certificate) bool { return o.Status.NotAfter != nil },
		certsac.Certificate("applied", ns).WithLabels(labels).WithSpec(certsac.CertificateSpec().WithSecret(secret).WithHosts("a")),
		certsac.Certificate("applied", ns).WithStatus(certsac.CertificateStatus().WithNotAfter(now)))

	use(t, c.TenancyV1().Tenants(), &tenancyv1.Tenant{Spec: tenancyv1.TenantSpec{Namespace: template.ObjectMeta}},
		func(o *tenancyv1.Tenant) { o.Status.Namespaces = []string{"n"} },
		func(o *tenancyv1.Tenant) bool {
			return len(o.Status.Namespaces) == 1 && (o.Name == "applied" || isTemplate(o.Spec.Namespace))
		},
		tenancyac.Tenant("applied").WithLabels(labels).WithSpec(tenancyac.TenantSpec().WithQuota(corev1.ResourceQuotaSpec{})),
		tenancyac.Tenant("applied").WithStatus(tenancyac.TenantStatus().WithNamespaces("n")))

	use(t, c.MonitoringV1().Analyses(ns), &monitoringv1.Analysis{Spec: monitoringv1.AnalysisSpec{Containers: template.Spec.Containers}}, nil, nil,
		monitoringac.Analysis("applied", ns).WithLabels(labels).WithSpec(monitoringac.AnalysisSpec().WithContainers(template.Spec.Containers...)),
		monitoringac.Analysis("applied", ns))
}
