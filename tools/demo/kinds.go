// SPDX-License-Identifier: Apache-2.0

// Of which objects the audit log has the bodies: Foos, what the controller may create for
// them, and what comes from that.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// rolePath is the file with the controller's ClusterRole.
var rolePath = filepath.Join(permissionsPath, "controller.yaml")

// narratedResources returns these resources, such as "deployments.apps".
func narratedResources() ([]string, error) {
	file, err := os.Open(rolePath)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	children, err := createdBy(file)
	if err != nil {
		return nil, fmt.Errorf("reading the controller's permissions from %s: %w", rolePath, err)
	}
	return slices.Concat([]string{"foos.samplecontroller.k8s.io"}, children, []string{"replicasets.apps", "pods"}), nil
}

// createdBy returns the resources that the roles in a file of YAML documents permit to
// create.
func createdBy(manifest io.Reader) ([]string, error) {
	var resources []string
	for decoder := yaml.NewYAMLOrJSONDecoder(manifest, 4096); ; {
		var role rbacv1.ClusterRole
		if err := decoder.Decode(&role); err != nil {
			if errors.Is(err, io.EOF) {
				return resources, nil
			}
			return nil, err
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "create") {
				resources = append(resources, resourcesOf(rule)...)
			}
		}
	}
}

// resourcesOf returns the resources of a rule, except for Events.
func resourcesOf(rule rbacv1.PolicyRule) []string {
	var resources []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if resource != "events" {
				resources = append(resources, strings.TrimSuffix(resource+"."+group, "."))
			}
		}
	}
	return resources
}
