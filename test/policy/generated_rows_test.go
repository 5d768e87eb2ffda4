// SPDX-License-Identifier: Apache-2.0

// Rows for which no policy is shipped. Each owns its children in another way.

package policy

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func rowsWithoutPolicy() []*row {
	foos := plan.Foos(shippedImage)
	configMaps := rowOf("ConfigMap", setConfigMap)
	configMaps.New = func(*samplev1alpha1.Foo) *corev1.ConfigMap { return &corev1.ConfigMap{Immutable: new(false)} }
	return []*row{
		{ChildKind: foos.Children[0], plausible: deployments.plausible, others: deployments.others, updates: anyType([]attempt[*appsv1.Deployment]{
			{"others' container", func(d *appsv1.Deployment) { podOf(d).Containers[1].Command = shell },
				"may change only nginx in the spec.template.spec.containers"},
		}...)},
		{ChildKind: rowOf("Service", setService).Of(foos)},
		{ChildKind: rowOf("Ingress", setIngress).Of(foos)},
		{ChildKind: rowOf("PodDisruptionBudget", setBudget).Of(foos)},
		{ChildKind: rowOf("HorizontalPodAutoscaler", setAutoscaler).Of(foos)},
		{ChildKind: configMaps.Of(foos), updates: anyType([]attempt[*corev1.ConfigMap]{
			{"a file of others", func(config *corev1.ConfigMap) { config.BinaryData = map[string][]byte{"other": {1}} },
				"may change only server.name in the binaryData"},
			{"a file in the way", func(config *corev1.ConfigMap) { config.BinaryData = map[string][]byte{"server.name": {1}} },
				"may set the binaryData.server.name"},
			{"a text of others", func(config *corev1.ConfigMap) { config.Data["other"] = "x" }, "in the data"},
		}...)},
	}
}

// rowOf returns a row for children under the Foo's name.
func rowOf[S any, T interface {
	*S
	plan.Object
}](kind string, set func(child T, foo *samplev1alpha1.Foo)) plan.Row[*samplev1alpha1.Foo, T] {
	return plan.Row[*samplev1alpha1.Foo, T]{
		Kind:     kind,
		Name:     func(foo *samplev1alpha1.Foo) string { return foo.Name },
		Empty:    func() T { return new(S) },
		New:      func(*samplev1alpha1.Foo) T { return new(S) },
		SetOwned: func(child T, foo *samplev1alpha1.Foo, _ plan.Seen) { set(child, foo) },
	}
}

// setService owns a map, and two fields of each element of a list, one of which is its name.
func setService(service *corev1.Service, foo *samplev1alpha1.Foo) {
	service.Spec.Selector = map[string]string{"app": "nginx", "controller": foo.Name}
	if len(service.Spec.Ports) != 1 {
		service.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("web")}}
	}
	service.Spec.Ports[0].Name, service.Spec.Ports[0].Port = "http", 80
}

// setIngress owns fields of the elements of a list within those of another list.
func setIngress(ingress *networkingv1.Ingress, foo *samplev1alpha1.Foo) {
	if len(ingress.Spec.Rules) != 1 {
		ingress.Spec.Rules = make([]networkingv1.IngressRule, 1)
	}
	rule := &ingress.Spec.Rules[0]
	rule.Host = foo.Name + ".example.com"
	if rule.HTTP == nil || len(rule.HTTP.Paths) != 1 {
		rule.HTTP = &networkingv1.HTTPIngressRuleValue{Paths: make([]networkingv1.HTTPIngressPath, 1)}
	}
	path := &rule.HTTP.Paths[0]
	path.Path, path.PathType = "/", new(networkingv1.PathTypePrefix)
	port := networkingv1.ServiceBackendPort{Number: 80}
	path.Backend.Service = &networkingv1.IngressServiceBackend{Name: foo.Name, Port: port}
}

// setBudget replaces a struct, and clears a field that no new child has.
func setBudget(budget *policyv1.PodDisruptionBudget, foo *samplev1alpha1.Foo) {
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx", "controller": foo.Name}}
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = new(intstr.FromInt32(1)), nil
}

// setAutoscaler replaces a list, and owns numbers and names that depend on the Foo's spec.
func setAutoscaler(autoscaler *autoscalingv2.HorizontalPodAutoscaler, foo *samplev1alpha1.Foo) {
	spec := &autoscaler.Spec
	spec.ScaleTargetRef.APIVersion, spec.ScaleTargetRef.Kind = "apps/v1", "Deployment"
	spec.ScaleTargetRef.Name = foo.Spec.DeploymentName
	spec.MaxReplicas = 10
	if foo.Spec.Replicas != nil {
		spec.MaxReplicas = *foo.Spec.Replicas
	}
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))}
	spec.Metrics = []autoscalingv2.MetricSpec{{
		Type:     autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: target},
	}}
}

// setConfigMap owns three keys of a map: one is the same for all Foos, one has the Foo's
// name in it, and one depends on the spec. It removes a key from another map.
func setConfigMap(config *corev1.ConfigMap, foo *samplev1alpha1.Foo) {
	if config.Data == nil {
		config.Data = map[string]string{}
	}
	config.Data["mode"] = "it's \"plain\"\n"
	config.Data["server.name"] = "web." + foo.Name + ".example.com"
	config.Data["deployment"] = foo.Spec.DeploymentName
	delete(config.BinaryData, "server.name") // a key can't be in both
}
