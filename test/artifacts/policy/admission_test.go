// SPDX-License-Identifier: Apache-2.0

// What mutating admission may add to a Deployment in the controller's name, and what a thief would
// add: for each field of the types, which of the two it is, and tables of both.

package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	testrows "example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// fields classifies the fields of a type: free ones may have any value, those within are judged by
// what they contain, and the others must stay as they are.
type fields struct{ free, within, others string }

// classes has the types in a Deployment, except for those that are judged as a whole.
var classes = map[reflect.Type]fields{
	reflect.TypeFor[appsv1.Deployment](): {"", "metadata spec", "kind apiVersion status"},
	reflect.TypeFor[metav1.ObjectMeta](): {"", "labels annotations", "name generateName namespace selfLink uid resourceVersion generation " +
		"creationTimestamp deletionTimestamp deletionGracePeriodSeconds ownerReferences finalizers managedFields"},
	reflect.TypeFor[appsv1.DeploymentSpec](): {"strategy minReadySeconds revisionHistoryLimit progressDeadlineSeconds", "template",
		"replicas selector paused"},
	reflect.TypeFor[corev1.PodTemplateSpec](): {"", "metadata spec", ""},
	reflect.TypeFor[corev1.PodSpec](): {
		// Where a Pod runs, how much it gets, and when it starts and ends.
		"nodeSelector affinity tolerations topologySpreadConstraints schedulerName schedulingGates readinessGates priority preemptionPolicy " +
			"overhead imagePullSecrets terminationGracePeriodSeconds enableServiceLinks",
		"resources containers initContainers securityContext dnsConfig",
		"volumes ephemeralContainers restartPolicy activeDeadlineSeconds dnsPolicy serviceAccountName serviceAccount " +
			"automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace hostname subdomain hostAliases " +
			"priorityClassName runtimeClassName setHostnameAsFQDN os hostUsers resourceClaims hostnameOverride schedulingGroup evictionResponders",
	},
	reflect.TypeFor[corev1.PodSecurityContext](): {"fsGroupChangePolicy", "", "seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot " +
		"supplementalGroups supplementalGroupsPolicy fsGroup sysctls seccompProfile appArmorProfile seLinuxChangePolicy"},
	reflect.TypeFor[corev1.PodDNSConfig](): {"options", "", "nameservers searches"},
	reflect.TypeFor[corev1.Container](): {
		"resizePolicy terminationMessagePolicy", "resources securityContext",
		"name image command args workingDir ports envFrom env restartPolicy restartPolicyRules volumeMounts volumeDevices livenessProbe " +
			"readinessProbe startupProbe lifecycle terminationMessagePath imagePullPolicy stdin stdinOnce tty",
	},
	reflect.TypeFor[corev1.SecurityContext](): {"", "", "capabilities privileged seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot " +
		"readOnlyRootFilesystem allowPrivilegeEscalation procMount seccompProfile appArmorProfile"},
	reflect.TypeFor[corev1.ResourceRequirements](): {"limits requests", "", "claims"},
}

// A field that a new release of Kubernetes adds is forbidden until it is in a list of the policy. Decide
// which, and add it here.
func TestEachFieldOfADeploymentIsClassified(t *testing.T) {
	for of, class := range classes {
		known := strings.Fields(class.free + " " + class.within + " " + class.others)
		for field := range of.Fields() {
			if name := nameOf(field); name != "" && !slices.Contains(known, name) {
				t.Errorf("%v has the field %s, which is in no class", of, name)
			}
		}
		if slices.Sort(known); len(slices.Compact(known)) < len(known) {
			t.Errorf("a field of %v is in two classes", of)
		}
	}
}

func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// isFree reports whether the value at a path in an object of a type may become another, or nil for
// none, whatever it was.
func isFree(of reflect.Type, at path, to any) bool {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if len(at) == 0 {
		return false
	}
	if of.Kind() == reflect.Slice {
		return isFree(of.Elem(), at[1:], to)
	}
	key, class := fmt.Sprint(at[0]), classes[of]
	switch {
	case slices.Contains(strings.Fields(class.free), key):
		return true
	case key == "labels" || key == "annotations":
		isOwned := len(at) == 1 || slices.Contains([]any{"app", "controller", samplev1alpha1.AnnotationAdoptBy}, at[1])
		return !isOwned && to != nil
	case slices.Contains(strings.Fields(class.within), key):
		i := slices.IndexFunc(reflect.VisibleFields(of), func(field reflect.StructField) bool { return nameOf(field) == key })
		return isFree(reflect.VisibleFields(of)[i].Type, at[1:], to)
	}
	return false
}

// hardened are values that the policy also lets be, because they only take something away. Some
// depend on what else is set.
var hardened = map[string]any{
	"automountServiceAccountToken": false, "hostUsers": false, "shareProcessNamespace": false, "privileged": false,
	"allowPrivilegeEscalation": false, "runAsNonRoot": true, "readOnlyRootFilesystem": true,
	"capabilities": map[string]any{"drop": []any{"ALL"}}, "capabilities.drop": []any{"ALL"}, "capabilities.drop.0": "ALL",
	"seccompProfile": map[string]any{"type": "RuntimeDefault"}, "seccompProfile.type": "RuntimeDefault",
	"imagePullPolicy": "Always", "resources": map[string]any{},
}

// isHardened reports whether a value at a path is one of these, or has nothing else in it.
func isHardened(at path, to any) bool {
	switch last := at[len(at)-1]; {
	case slices.Contains([]any{"priorityClassName", "runAsGroup", "fsGroup"}, last) || slices.Contains(at, any("emptyDir")): // with conditions
		return true
	case to == nil:
		return last == "imagePullPolicy" // it has a default
	}
	for i := range at {
		suffix := strings.ReplaceAll(strings.Trim(fmt.Sprint(at[i:]), "[]"), " ", ".")
		if value, found := hardened[suffix]; found && reflect.DeepEqual(value, to) {
			return true
		}
	}
	for key, inner := range fieldsIn(to) {
		if !isHardened(append(slices.Clip(at), key), inner) {
			return false
		}
	}
	return len(fieldsIn(to)) > 0
}

// admitted are fields that platforms set, such as GKE Autopilot, the safeguards of AKS, Kyverno, Gatekeeper, GitOps
// tools and service meshes.
var admitted = []attempt[*appsv1.Deployment]{
	adds("metadata.labels", "{argocd.argoproj.io/instance: shop, team: red, app: shop}"),
	adds("metadata.annotations", "{autopilot.gke.io/resource-adjustment: '{}', platform.example.com/image: checked, team: red}"),
	adds("spec.template.metadata.labels", "{cost-center: '1', istio.io/rev: canary, team: red}"),
	adds("spec.template.metadata.annotations", "{linkerd.io/inject: enabled, sidecar.istio.io/inject: 'false', team: red}"),
	adds("spec.template.metadata.annotations", "{container.apparmor.security.beta.kubernetes.io/nginx: runtime/default}"),
	adds("spec", "{revisionHistoryLimit: 3, progressDeadlineSeconds: 900, minReadySeconds: 5, strategy: {rollingUpdate: {maxSurge: 1}}}"),
	adds("spec.template.spec.nodeSelector", "{cloud.google.com/gke-spot: 'true'}"),
	adds("spec.template.spec.tolerations", "[{key: kubernetes.io/arch, operator: Equal, value: amd64, effect: NoSchedule}]"),
	adds("spec.template.spec.topologySpreadConstraints", "[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]"),
	adds("spec.template.spec.affinity", "{podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}"),
	adds("spec.template.spec.imagePullSecrets", "[{name: mirror}]"),
	adds("spec.template.spec", "{priorityClassName: team-default, schedulerName: volcano, enableServiceLinks: false, hostUsers: false}"),
	adds("spec.template.spec", "{terminationGracePeriodSeconds: 15, dnsConfig: {options: [{name: ndots, value: '1'}]}, automountServiceAccountToken: false}"),
	adds("spec.template.spec.resources", "{requests: {memory: 1Gi}}"),
	adds("spec.template.spec.securityContext", "{runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, appArmorProfile: {type: RuntimeDefault}}"),
	adds("spec.template.spec.securityContext", "{runAsGroup: 3000, fsGroup: 2000}"),
	adds("spec.template.spec.volumes", "[{name: cache, emptyDir: {sizeLimit: 1Gi}}]"),
	adds("spec.template.spec.containers[nginx].resources", "{requests: {cpu: 500m, ephemeral-storage: 1Gi}, limits: {cpu: 500m}}"),
	adds("spec.template.spec.containers[nginx]", "{imagePullPolicy: Always, terminationMessagePolicy: FallbackToLogsOnError}"),
	adds("spec.template.spec.containers[nginx].securityContext", "{allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true}"),
	adds("spec.template.spec.containers[nginx].securityContext", "{capabilities: {drop: [NET_RAW, ALL]}, seccompProfile: {type: RuntimeDefault}}"),
}

// stolen are fields that only a thief sets.
var stolen = slices.Concat([]attempt[*appsv1.Deployment]{
	steals("metadata.finalizers", "[example.com/hold]"),
	steals("metadata.annotations", "{samplecontroller.k8s.io/adopt-by: other}"),
	steals("spec.paused", "true"),
	steals("spec.template.metadata.finalizers", "[example.com/hold]"),
	steals("spec.template.metadata.annotations", "{sidecar.istio.io/proxyImage: evil}"),
	steals("spec.template.metadata.annotations", "{vault.hashicorp.com/agent-inject-command-x: sh}"),
	steals("spec.template.metadata.annotations", "{k8s.v1.cni.cncf.io/networks: host}"),
	steals("spec.template.metadata.annotations", "{container.apparmor.security.beta.kubernetes.io/nginx: unconfined}"),
	steals("spec.template.metadata.labels", "{service: bank}"), steals("spec.template.metadata.labels", "{app.kubernetes.io/name: bank}"),
	steals("spec.template.metadata.labels", "{app: bank}"), steals("spec.template.metadata.labels", "{controller: bar}"),
	steals("spec.template.spec.priorityClassName", "system-node-critical"),
	steals("spec.template.spec.dnsConfig.nameservers", "[192.0.2.1]"),
	steals("spec.template.spec.containers[another]", "{image: 'nginx:latest'}"),
	steals("spec.template.spec.initContainers", "[{name: first, image: 'nginx:latest'}]"),
	steals("spec.template.spec.securityContext.runAsUser", "0"), steals("spec.template.spec.securityContext.runAsUser", "1000"),
	steals("spec.template.spec.securityContext.fsGroup", "0"), steals("spec.template.spec.securityContext.runAsGroup", "0"),
	steals("spec.template.spec.securityContext.seccompProfile", "{type: Unconfined}"),
	steals("spec.template.spec.securityContext.appArmorProfile", "{type: Unconfined}"),
	steals("spec.template.spec.containers[nginx].image", "busybox"), steals("spec.template.spec.containers[nginx].image", "nginx:1"),
	steals("spec.template.spec.containers[nginx].image", "evil.example.com/nginx:latest"),
	steals("spec.template.spec.containers[nginx].imagePullPolicy", "Never"),
	steals("spec.template.spec.containers[nginx].command", "[sh, -c, 'true']"), steals("spec.template.spec.containers[nginx].args", "[-h]"),
	steals("spec.template.spec.containers[nginx].env", "[{name: A, value: b}]"),
	steals("spec.template.spec.containers[nginx].ports", "[{containerPort: 80, hostPort: 80}]"),
	steals("spec.template.spec.containers[nginx].lifecycle", "{postStart: {exec: {command: [sh]}}}"),
	steals("spec.template.spec.containers[nginx].volumeMounts", "[{name: cache, mountPath: /etc, subPath: etc}]"),
	steals("spec.template.spec.containers[nginx].securityContext.privileged", "true"),
	steals("spec.template.spec.containers[nginx].securityContext.runAsUser", "0"),
	steals("spec.template.spec.containers[nginx].securityContext.capabilities", "{add: [SYS_ADMIN]}"),
	steals("spec.template.spec.containers[nginx].securityContext.procMount", "Unmasked"),
}, eachOf(`
hostNetwork: true
hostPID: true
hostIPC: true
hostUsers: true
shareProcessNamespace: true
nodeName: node-1
serviceAccountName: admin
automountServiceAccountToken: true
runtimeClassName: runc
hostAliases: [{ip: 192.0.2.1, hostnames: [bank]}]
volumes: [{name: cache, hostPath: {path: /}}]
volumes: [{name: loot, secret: {secretName: loot}}]
volumes: [{name: loot, configMap: {name: loot}}]
volumes: [{name: loot, persistentVolumeClaim: {claimName: loot}}]
volumes: [{name: loot, nfs: {server: a, path: /}}]
volumes: [{name: loot, csi: {driver: secrets}}]
volumes: [{name: loot, projected: {sources: [{serviceAccountToken: {path: token}}]}}]
resourceClaims: [{name: gpu, resourceClaimName: gpu}]`))

// eachOf returns the thefts of fields of the Pod, one a line.
func eachOf(lines string) (all []attempt[*appsv1.Deployment]) {
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		field, value, _ := strings.Cut(line, ": ")
		all = append(all, steals("spec.template.spec."+field, value))
	}
	return all
}

// steals is a write of a field, which the message names.
func steals(field, value string) attempt[*appsv1.Deployment] {
	a := adds(field, value)
	a.refusal = field
	return a
}

// adds is a write of a field, by a strategic merge patch with the value, in YAML.
func adds(field, value string) attempt[*appsv1.Deployment] {
	patch := value
	for _, key := range slices.Backward(strings.Split(field, ".")) {
		if list, name, ok := strings.Cut(strings.TrimSuffix(key, "]"), "["); ok {
			key, patch = list, "["+strings.Replace(patch, "{", "{name: "+name+", ", 1)+"]"
		}
		patch = "{" + key + ": " + patch + "}"
	}
	patch = patch[1 : len(patch)-1] // what begins with a brace is read as JSON
	return attempt[*appsv1.Deployment]{what: field + " " + value, change: func(d *appsv1.Deployment) {
		patch, err := utilyaml.ToJSON([]byte(patch))
		if err != nil {
			panic(err)
		}
		patched, err := testrows.Patched(d, types.StrategicMergePatchType, patch)
		if err != nil {
			panic(err)
		}
		*d = *patched.(*appsv1.Deployment)
	}}
}
