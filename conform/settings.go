// SPDX-License-Identifier: Apache-2.0

// The settings file: what conform can't find out about a controller.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// settings are the contents of the file of -settings. Paths are relative to it.
type settings struct {
	// Module is a Go module as PATH@VERSION. CRDs, Objects and Manifests that begin with $(MODULE)
	// are in it, and a program that does so is a package of it, which is built.
	Module string `json:"module"`
	// CRDs, Objects and Program are in the place of -crd, -object and the arguments. Of the
	// program, only a path that begins with ./ or ../ is relative to the file.
	CRDs    []string `json:"crds"`
	Objects []string `json:"objects"`
	Program []string `json:"program"`
	// Env is added to the program's environment. In it and in arguments, $(KUBECONFIG),
	// $(NAMESPACE) and $(REPLICA) are replaced.
	Env map[string]string `json:"env"`
	// Manifests are further files or folders to install, such as permissions. A folder has a
	// kustomization.
	Manifests []string `json:"manifests"`
	// ServiceAccount is the account of the controller, as namespace/name. Without it, the
	// controller may do everything.
	ServiceAccount string `json:"serviceAccount"`
	// LeaderElection are the arguments with which replicas elect a leader. Its Lease must be in
	// the namespace of the kubeconfig.
	LeaderElection []string `json:"leaderElection"`
	// ControllerManager are further arguments for the control plane's kube-controller-manager.
	ControllerManager []string `json:"controllerManager"`
	// Ignore are regular expressions for what is not compared: "RESOURCE NAME PATH".
	Ignore []string `json:"ignore"`
	// Ready is the type of the condition that says that an object is ready, if it isn't Ready.
	Ready string `json:"ready"`
	// Settle is how long a run without a fault must be quiet to be at rest; Rest is how long
	// nothing may be written then; Timeout bounds the wait for the end after a fault.
	Settle  metav1.Duration `json:"settle"`
	Rest    metav1.Duration `json:"rest"`
	Timeout metav1.Duration `json:"timeout"`
	// Lag is how far caches are behind in the cases about stale caches.
	Lag metav1.Duration `json:"lag"`
	// Skip are cases that don't concern this controller: a regular expression for names, and
	// the reason.
	Skip map[string]string `json:"skip"`

	ignore []*regexp.Regexp
}

func readSettings(file string) (*settings, error) {
	s := &settings{}
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(content, s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	s.relativeTo(filepath.Dir(file))
	if len(s.Program) > 0 && strings.HasPrefix(s.Program[0], ".") {
		var err error
		if s.Program[0], err = filepath.Abs(filepath.Join(filepath.Dir(file), s.Program[0])); err != nil {
			return nil, err
		}
	}
	for _, text := range s.Ignore {
		e, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("%s: ignore: %w", file, err)
		}
		s.ignore = append(s.ignore, e)
	}
	for text := range s.Skip {
		if _, err := regexp.Compile(text); err != nil {
			return nil, fmt.Errorf("%s: skip: %w", file, err)
		}
	}
	for value, otherwise := range map[*metav1.Duration]time.Duration{
		&s.Settle: 5 * time.Second, &s.Rest: 65 * time.Second, &s.Timeout: 2 * time.Minute, &s.Lag: 4500 * time.Millisecond,
	} {
		if value.Duration == 0 {
			value.Duration = otherwise
		}
	}
	return s, nil
}

// relativeTo makes paths relative to a folder, apart from those in the module.
func (s *settings) relativeTo(folder string) {
	for _, paths := range [][]string{s.CRDs, s.Objects, s.Manifests} {
		for i := range paths {
			if !strings.HasPrefix(paths[i], moduleVariable) {
				paths[i] = filepath.Join(folder, paths[i])
			}
		}
	}
}

// skipped returns why a case is not run, or "".
func (s *settings) skipped(name string) string {
	for text, reason := range s.Skip {
		if regexp.MustCompile(text).MatchString(name) {
			return reason
		}
	}
	return ""
}
