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

// Waiting at start until Foos can be listed.

package kubeclient

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

// WaitForFoos returns when the API server lists the Foos of a namespace, or of all
// namespaces, or when ctx is done. If the CustomResourceDefinition or the permission is
// missing, it logs that once and waits, so that the parts of an installation can be
// applied in any order. It also waits while the server answers that clients should retry
// later. If the server can't be reached or refuses the credentials, it returns an error
// that says what to do.
func (c *Clients) WaitForFoos(ctx context.Context, namespace string) error {
	logged := sets.New[metav1.StatusReason]()
	for {
		err := c.probeFoos(ctx, namespace)
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // a requested stop is not a failure
		}
		hint := remedy(err)
		if hint == "" {
			return explainUnreachable(err, c.host)
		}
		if reason := apierrors.ReasonForError(err); !logged.Has(reason) {
			logged.Insert(reason)
			klog.FromContext(ctx).Info("Waiting until Foos can be listed", "cause", hint)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollPeriod(err)):
		}
	}
}

const (
	// shortestPollPeriod is the time between two attempts if the API server names none.
	shortestPollPeriod = 2 * time.Second
	// longestPollPeriod bounds the time that the API server may ask for.
	longestPollPeriod = time.Minute
)

// pollPeriod returns the time to wait after an error: what the API server asks for,
// within bounds.
func pollPeriod(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(max(time.Duration(seconds)*time.Second, shortestPollPeriod), longestPollPeriod)
}

// probeFoos lists one Foo, with the permission that the informer will need.
func (c *Clients) probeFoos(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, c.requestTimeout)
	defer cancel()
	_, err := c.Foos.SamplecontrollerV1alpha1().Foos(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// remedy describes the cause of an error that WaitForFoos waits out, and what to do about
// it. It returns "" for any other error.
func remedy(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "the CustomResourceDefinition foos.samplecontroller.k8s.io is not installed: install it with 'kubectl apply -f artifacts/crd'"
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the permission is missing: grant it to the identity that the controller runs as (%v)", err)
	case isBusy(err):
		return fmt.Sprintf("the API server is busy and asks clients to retry later (%v)", err)
	}
	return ""
}

// isBusy reports whether the API server, or a proxy in front of it, asks clients to retry
// later.
func isBusy(err error) bool {
	_, later := apierrors.SuggestsClientDelay(err)
	return later || apierrors.IsTooManyRequests(err)
}

// explainUnreachable returns an error that says in one line why the API server can't be
// used, and what to check.
func explainUnreachable(err error, host string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the API server at %s does not accept the credentials: renew those in the kubeconfig: %w", host, err)
	}
	return fmt.Errorf("the API server at %s can't be reached: check that it runs and that -kubeconfig or -master names it: %w", host, err)
}
