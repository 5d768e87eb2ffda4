/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package v1alpha1

// ConditionReady is the type of the condition that says whether the Deployment
// is as the Foo asks and all its Pods are available.
const ConditionReady = "Ready"

// Reasons of the condition Ready. An event that reports a change of the
// condition has the same reason.
const (
	// ReasonAvailable (True): the Deployment has rolled out the Foo's spec and
	// all its Pods are available.
	ReasonAvailable = "Available"
	// ReasonProgressing (False): the Deployment is being created or rolled out, is
	// paused, or could not be written yet, for a reason that passes.
	ReasonProgressing = "Progressing"
	// ReasonDeploymentConflict (False): a Deployment that this Foo does not
	// control has the name in spec.deploymentName.
	ReasonDeploymentConflict = "DeploymentConflict"
	// ReasonDeploymentFailed (False): the API server refuses the Deployment or
	// stores it otherwise than asked, or the Deployment reports that it cannot
	// make its Pods or does not progress.
	ReasonDeploymentFailed = "DeploymentFailed"
	// ReasonTerminating (False): the Foo or its Deployment is being deleted.
	ReasonTerminating = "Terminating"
)

// AnnotationAdoptBy names, on a Deployment that has no controller, the Foo of
// the same namespace that may become its controller. Whoever can set it may
// edit the Deployment, which is why it is not on the Foo. It is removed when
// that has happened: each adoption takes a consent of its own.
const AnnotationAdoptBy = "samplecontroller.k8s.io/adopt-by"
