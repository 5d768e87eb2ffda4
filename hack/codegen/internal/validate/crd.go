// SPDX-License-Identifier: Apache-2.0

// Package validate checks CustomResourceDefinitions with the code of the API server.
package validate

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CRD returns why an API server would refuse to create a CustomResourceDefinition. An error means that it can't even
// be read.
func CRD(crd *apiextensionsv1.CustomResourceDefinition) (field.ErrorList, error) {
	crd = crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = []string{version.Name}
		}
	}
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
		return nil, err
	}
	return validation.ValidateCustomResourceDefinition(context.Background(), &internal), nil
}
