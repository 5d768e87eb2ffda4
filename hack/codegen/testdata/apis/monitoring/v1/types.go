package v1

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Analysis has no status, and as many types of Kubernetes as a monitoring stack: with those that they
// contain, far more than fifty.
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Analysis struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              AnalysisSpec `json:"spec"`
}

type AnalysisSpec struct {
	Affinity     *corev1.Affinity                               `json:"affinity,omitempty"`
	Tolerations  []corev1.Toleration                            `json:"tolerations,omitempty"`
	Spread       []corev1.TopologySpreadConstraint              `json:"spread,omitempty"`
	Security     *corev1.PodSecurityContext                     `json:"security,omitempty"`
	Containers   []corev1.Container                             `json:"containers,omitempty"`
	Sidecars     map[string]corev1.Container                    `json:"sidecars,omitempty"`
	Volumes      []corev1.Volume                                `json:"volumes,omitempty"`
	Resources    corev1.ResourceRequirements                    `json:"resources,omitempty"`
	Requests     corev1.ResourceList                            `json:"requests,omitempty"`
	DNS          *corev1.PodDNSConfig                           `json:"dns,omitempty"`
	Service      *corev1.ServiceSpec                            `json:"service,omitempty"`
	Protocol     corev1.Protocol                                `json:"protocol,omitempty"`
	Nodes        *corev1.NodeSelector                           `json:"nodes,omitempty"`
	LoadBalancer *corev1.LoadBalancerStatus                     `json:"loadBalancer,omitempty"`
	Update       *appsv1.StatefulSetUpdateStrategy              `json:"update,omitempty"`
	Deployment   *appsv1.DeploymentSpec                         `json:"deployment,omitempty"`
	Metrics      []autoscalingv2.MetricSpec                     `json:"metrics,omitempty"`
	Scaling      *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"scaling,omitempty"`
	Disruption   *policyv1.PodDisruptionBudgetSpec              `json:"disruption,omitempty"`
	Endpoint     *discoveryv1.EndpointConditions                `json:"endpoint,omitempty"`
	Webhook      *admissionv1.WebhookClientConfig               `json:"webhook,omitempty"`
	Owners       []metav1.OwnerReference                        `json:"owners,omitempty"`
	Matrix       map[string][]string                            `json:"matrix,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type AnalysisList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Analysis `json:"items"`
}
