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
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// apiPollPeriod is how often a missing CustomResourceDefinition is looked for.
const apiPollPeriod = 2 * time.Second

// waitForFoos returns when the API server lists Foos, or ctx is done. A missing
// CustomResourceDefinition or right is told once and waited for, so that the
// parts of an installation may come in any order. A server that can't be
// reached, or does not know who we are, is an error.
func waitForFoos(ctx context.Context, client clientset.Interface, namespace string, timeout time.Duration) error {
	told := false
	err := wait.PollUntilContextCancel(ctx, apiPollPeriod, true, func(ctx context.Context) (bool, error) {
		err := probeFoos(ctx, client, namespace, timeout)
		hint := waitingFor(err)
		if hint == "" {
			return err == nil, err
		}
		if !told {
			told = true
			klog.FromContext(ctx).Info("Waiting until Foos can be listed", "cause", hint)
		}
		return false, nil
	})
	if ctx.Err() != nil {
		err = nil // the stop that was asked for, not a failure
	}
	return err
}

// probeFoos asks the API server for one Foo, as the informer is about to.
func probeFoos(ctx context.Context, client clientset.Interface, namespace string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := client.SamplecontrollerV1alpha1().Foos(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// waitingFor says what an administrator has to do where an error is of the
// kind that is waited for, else "".
func waitingFor(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "the CustomResourceDefinition foos.samplecontroller.k8s.io is not installed: install it with 'kubectl apply -f artifacts/crd'"
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the right is missing: grant it to the identity that this runs as (%v)", err)
	}
	return ""
}

// explainUnreachable says in one line why the API server can't be used.
func explainUnreachable(err error, host string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the API server at %s does not accept the credentials: renew those in the kubeconfig: %w", host, err)
	}
	return fmt.Errorf("the API server at %s can't be reached: check that it runs and that -kubeconfig or -master names it: %w", host, err)
}
