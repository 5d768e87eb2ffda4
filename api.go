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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

const (
	// apiPollPeriod is how often a missing CustomResourceDefinition is looked for.
	apiPollPeriod = 2 * time.Second
	// longestPollPeriod bounds what the API server may ask for instead.
	longestPollPeriod = time.Minute
)

// waitForFoos returns when the API server lists Foos, or ctx is done. A missing
// CustomResourceDefinition or right is told once and waited for, so that the
// parts of an installation may come in any order; so is a server that asks for
// patience. One that can't be reached, or does not know who we are, is an error.
func waitForFoos(ctx context.Context, client clientset.Interface, namespace string, timeout time.Duration) error {
	told := sets.New[metav1.StatusReason]()
	for {
		err := probeFoos(ctx, client, namespace, timeout)
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // the stop that was asked for is not a failure
		}
		hint := waitingFor(err)
		if hint == "" {
			return err
		}
		if reason := apierrors.ReasonForError(err); !told.Has(reason) {
			told.Insert(reason)
			klog.FromContext(ctx).Info("Waiting until Foos can be listed", "cause", hint)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollPeriod(err)):
		}
	}
}

// pollPeriod is how long to wait after an error: as long as the API server asks
// for, within bounds.
func pollPeriod(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(max(time.Duration(seconds)*time.Second, apiPollPeriod), longestPollPeriod)
}

// probeFoos asks the API server for one Foo, as the informer is about to.
func probeFoos(ctx context.Context, client clientset.Interface, namespace string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := client.SamplecontrollerV1alpha1().Foos(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// waitingFor says what an administrator can do about an error of the kind that
// is waited for, else "".
func waitingFor(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "the CustomResourceDefinition foos.samplecontroller.k8s.io is not installed: install it with 'kubectl apply -f artifacts/crd'"
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the right is missing: grant it to the identity that this runs as (%v)", err)
	case isBusy(err):
		return fmt.Sprintf("the API server asks for patience (%v)", err)
	}
	return ""
}

// isBusy reports whether the API server, or a proxy before it, asks to be called
// again later.
func isBusy(err error) bool {
	_, later := apierrors.SuggestsClientDelay(err)
	return later || apierrors.IsTooManyRequests(err)
}

// explainUnreachable says in one line why the API server can't be used.
func explainUnreachable(err error, host string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the API server at %s does not accept the credentials: renew those in the kubeconfig: %w", host, err)
	}
	return fmt.Errorf("the API server at %s can't be reached: check that it runs and that -kubeconfig or -master names it: %w", host, err)
}
