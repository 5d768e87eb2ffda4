// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=samplecontroller.k8s.io
// +k8s:openapi-model-package=com.example.sample-controller.pkg.apis.samplecontroller.v1alpha1

// Package v1alpha1 defines the kind Foo of the API group samplecontroller.k8s.io, version
// v1alpha1. hack/update-codegen.sh generates from types.go: the files zz_generated.* and
// README.md here, everything under pkg/generated, the CustomResourceDefinition in artifacts/crd,
// and its JSON schema in artifacts/schemas.
//
// The CustomResourceDefinition requires Kubernetes 1.34 or newer, the oldest release that
// its tests run on.
package v1alpha1
