// SPDX-License-Identifier: Apache-2.0

// The conditions of a Foo's status, their reasons, and the annotation that allows adoption.

package v1alpha1

// ConditionReady is the type of the condition that is True if the Deployment is in its
// desired state and all its Pods are available.
const ConditionReady = "Ready"

// ConditionStalled is the type of the condition that is True if the Foo is not ready and
// will not become ready until someone acts: its user, an administrator, or whoever writes to
// its Deployment. It has the reason and message of Ready. It is absent otherwise.
const ConditionStalled = "Stalled"

// ConditionSuspended is the type of the condition that is True while spec.suspend is true.
// Its reason equals its type. It is absent otherwise.
const ConditionSuspended = "Suspended"

// Reasons of the condition Ready. The Event that reports a transition of the condition
// has the same reason.
const (
	// ReasonPending (Unknown): no controller has synced the Foo. The API server sets it by
	// default; the controller never does, so there is no Event.
	ReasonPending = "Pending"
	// ReasonAvailable (True): the Deployment has rolled out the Foo's spec and all its
	// Pods are available.
	ReasonAvailable = "Available"
	// ReasonProgressing (False): the Deployment is being created or rolled out, is
	// paused, or could not be written yet, for a temporary reason.
	ReasonProgressing = "Progressing"
	// ReasonDegraded (False): the Deployment was rolled out with all Pods available, and some
	// are not any more.
	ReasonDegraded = "Degraded"
	// ReasonUnavailable (False): the same, and none is available.
	ReasonUnavailable = "Unavailable"
	// ReasonDeploymentConflict (False): a Deployment named spec.deploymentName exists, but
	// this Foo does not control it.
	ReasonDeploymentConflict = "DeploymentConflict"
	// ReasonDeploymentFailed (False): the API server refuses the Deployment or does not
	// store it as it was written, or the Deployment reports that it can't create its Pods
	// or does not progress.
	ReasonDeploymentFailed = "DeploymentFailed"
	// ReasonTerminating (False): the Foo or its Deployment is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonSuspended (False): the Foo needs a write, but spec.suspend is true.
	ReasonSuspended = "Suspended"
)

// ReasonRepairsUndone is the reason of an Event, and of no condition: another client undoes each
// repair of the Deployment, at such long intervals that the Foo is ready in between.
const ReasonRepairsUndone = "RepairsUndone"

// AnnotationAdoptBy names, on a Deployment without a controller, the Foo in the same
// namespace that may become its controller. The annotation is on the Deployment and not
// on the Foo, because setting it requires permission to edit the Deployment. The
// controller removes it when it adopts the Deployment, so that each adoption needs new
// consent.
const AnnotationAdoptBy = "samplecontroller.k8s.io/adopt-by"
