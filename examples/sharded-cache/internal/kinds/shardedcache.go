// The kind ShardedCache: a StatefulSet and a Service for each of its shards.

package kinds

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "example.com/acme/pkg/apis/acme/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

// declareShardedCache puts the kind and each row of its table beside the informer and the client.
func declareShardedCache(clients Clients, _ Options) *table.Kind {
	return table.Of(
		plan.Kind{Name: "ShardedCache", Resource: api.SchemeGroupVersion.WithResource("shardedcaches")},
		clients.CustomInformers.Acme().V1alpha1().ShardedCaches().Informer(), clients.Custom.AcmeV1alpha1().ShardedCaches,
		table.Owns(servicesOfShardedCache, clients.KubeInformers.Core().V1().Services().Informer(), clients.Kube.CoreV1().Services),
		table.Owns(rowOfShardedCache, clients.KubeInformers.Apps().V1().StatefulSets().Informer(), clients.Kube.AppsV1().StatefulSets),
	)
}

// shardsOf returns the names of the shards. A name is a shard's identity.
func shardsOf(owner *api.ShardedCache) []string {
	names := make([]string, owner.Spec.Shards)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", owner.Name, i)
	}
	return names
}

// podLabelsOfShard returns the labels of the Pods of a shard.
func podLabelsOfShard(owner *api.ShardedCache, shard string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "shardedcache", "app.kubernetes.io/instance": owner.Name, "acme.dev/shard": shard}
}

// servicesOfShardedCache declares the Services, which give the shards their names in DNS.
var servicesOfShardedCache = plan.Row[*api.ShardedCache, *corev1.Service]{
	Kind: "Service", Resource: corev1.SchemeGroupVersion.WithResource("services"),
	Names: shardsOf,
	Init:  func(child *corev1.Service, _ *api.ShardedCache) { child.Spec.ClusterIP = corev1.ClusterIPNone },
	SetOwned: func(child *corev1.Service, owner *api.ShardedCache, _ *plan.View) {
		child.Spec.Selector = podLabelsOfShard(owner, child.Name)
		if len(child.Spec.Ports) != 1 {
			child.Spec.Ports = make([]corev1.ServicePort, 1)
		}
		child.Spec.Ports[0].Port = 11211
	},
	Keep: func(kept, found *corev1.Service) {
		kept.Spec.Selector, kept.Spec.Ports = found.Spec.Selector, found.Spec.Ports
	},
}

// rowOfShardedCache declares the StatefulSets, with one Pod each.
var rowOfShardedCache = plan.Row[*api.ShardedCache, *appsv1.StatefulSet]{
	Kind: "StatefulSet", Resource: appsv1.SchemeGroupVersion.WithResource("statefulsets"),
	Names: shardsOf,
	// One shard starts, or restarts, at a time.
	OneAtATime: true,
	Init: func(child *appsv1.StatefulSet, owner *api.ShardedCache) {
		child.Spec.ServiceName = child.Name
		child.Spec.Selector = &metav1.LabelSelector{MatchLabels: podLabelsOfShard(owner, child.Name)}
	},
	SetOwned: func(child *appsv1.StatefulSet, owner *api.ShardedCache, _ *plan.View) {
		child.Spec.Replicas = new(int32(1))
		for key, value := range podLabelsOfShard(owner, child.Name) {
			metav1.SetMetaDataLabel(&child.Spec.Template.ObjectMeta, key, value)
		}
		pod := &child.Spec.Template.Spec
		at := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "main" })
		if at < 0 {
			at, pod.Containers = len(pod.Containers), append(pod.Containers, corev1.Container{Name: "main"})
		}
		pod.Containers[at].Image = "memcached:1.6"
		pod.Containers[at].Args = []string{"--memory-limit", fmt.Sprint(owner.Spec.Memory)}
	},
	Keep: func(kept, found *appsv1.StatefulSet) {
		kept.Spec.Replicas, kept.Spec.Template.Labels = found.Spec.Replicas, found.Spec.Template.Labels
		for _, container := range found.Spec.Template.Spec.Containers {
			kept.Spec.Template.Spec.Containers = append(kept.Spec.Template.Spec.Containers,
				corev1.Container{Name: container.Name, Image: plan.Truncate(container.Image, plan.MaxKept), Args: container.Args})
		}
		kept.Status = found.Status
	},
	Judge: func(child *appsv1.StatefulSet) plan.Readiness {
		status := child.Status
		if status.ObservedGeneration < child.Generation || status.UpdateRevision != status.CurrentRevision || status.Replicas != 1 || status.ReadyReplicas != 1 {
			return plan.NotReady(plan.ReasonProgressing, "shard %q has no ready Pod of the wanted version", child.Name)
		}
		return plan.Ready("shard %q is ready", child.Name)
	},
	// A shard that works stays until those that replace it are ready.
	Serves: func(child *appsv1.StatefulSet) bool { return child.Status.ReadyReplicas > 0 },
	Restarts: func(before, after *appsv1.StatefulSet) bool {
		return before.Status.Replicas > 0 && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template)
	},
	Report: func(owner *api.ShardedCache, child *appsv1.StatefulSet) {
		owner.Status.ReadyShards += min(child.Status.ReadyReplicas, 1)
	},
}
