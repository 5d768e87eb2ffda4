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

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// versions are what "devcluster version" says.
type versions struct {
	kubernetes string
	// emulated has the oldest first and Kubernetes' own last.
	emulated []string
}

func (v versions) newest() string { return v.emulated[len(v.emulated)-1] }

func readVersions(ctx context.Context) (versions, error) {
	out, err := exec.CommandContext(ctx, devcluster, "version").Output()
	if err != nil {
		return versions{}, fmt.Errorf("%s version: %w", devcluster, err)
	}
	return parseVersions(string(out))
}

func parseVersions(text string) (versions, error) {
	var v versions
	for line := range strings.Lines(text) {
		switch fields := strings.Fields(line); {
		case len(fields) == 2 && fields[0] == "Kubernetes":
			v.kubernetes = fields[1]
		case len(fields) > 1 && fields[0] == "Emulates":
			v.emulated = fields[1:]
		}
	}
	if v.kubernetes == "" || v.emulated == nil {
		return v, fmt.Errorf("devcluster version does not say what it emulates:\n%s", text)
	}
	return v, nil
}

// abilities are what an API server has enabled.
type abilities struct {
	features, resources []string
}

// readAbilities asks an API server that emulates a Kubernetes.
func readAbilities(ctx context.Context, minor string) (abilities, error) {
	questions := `"$0" kubectl get --raw=/metrics && "$0" kubectl api-resources --no-headers`
	command := exec.CommandContext(ctx, devcluster, "run", "-emulated-version="+minor, "-without=kube-controller-manager,kube-scheduler,kwok",
		"--", "sh", "-c", questions, devcluster)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // it removes the cluster's data
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return abilities{}, fmt.Errorf("asking a Kubernetes %s what it has: %w\n%s", minor, err, complaints.String())
	}
	a := parseAbilities(string(out))
	if len(a.features) == 0 || len(a.resources) == 0 {
		return a, fmt.Errorf("a Kubernetes %s has %d features and %d resources: not to be believed", minor, len(a.features), len(a.resources))
	}
	return a, nil
}

var (
	enabledFeature = regexp.MustCompile(`^kubernetes_feature_enabled\{name="([^"]+)".*\} 1$`)
	// servedResource is a line of kubectl api-resources: name, short names perhaps, version, whether namespaced, kind.
	servedResource = regexp.MustCompile(`^([a-z]+)\s+(?:\S+\s+)?[a-z0-9./]+\s+(?:true|false)\s+[A-Za-z]+$`)
)

func parseAbilities(text string) abilities {
	var a abilities
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if match := enabledFeature.FindStringSubmatch(line); match != nil {
			a.features = append(a.features, match[1])
		} else if match := servedResource.FindStringSubmatch(line); match != nil {
			a.resources = append(a.resources, match[1])
		}
	}
	slices.Sort(a.features)
	slices.Sort(a.resources)
	a.features, a.resources = slices.Compact(a.features), slices.Compact(a.resources)
	return a
}

// near are the features about what the controller, its manifests and its tests use.
var near = regexp.MustCompile(`CRD|CustomResource|Deployment|ReplicaSet|AdmissionPolicy|Watch`)

// lacks says in words what is not there and another has.
func (a abilities) lacks(other abilities) string {
	features, resources := without(other.features, a.features), without(other.resources, a.resources)
	if len(features) == 0 && len(resources) == 0 {
		return "nothing"
	}
	parts := []string{"resources: none"}
	if len(resources) > 0 {
		parts[0] = "resources: " + strings.Join(resources, ", ")
	}
	nearest := slices.DeleteFunc(slices.Clone(features), func(name string) bool { return !near.MatchString(name) })
	parts = append(parts, fmt.Sprintf("features: %d", len(features)))
	if len(nearest) > 0 {
		parts[1] += ", among them " + strings.Join(nearest, ", ")
	}
	return strings.Join(parts, "; ")
}

// without returns what all has and some has not.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}
