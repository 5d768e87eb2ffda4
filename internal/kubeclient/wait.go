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

// WaitForFoos returns when the API server lists the Foos of a namespace, or of all,
// or when ctx is done. It logs a missing CustomResourceDefinition or permission once
// and waits for it, so that the parts of an installation may come in any order; it
// waits for a server that asks for patience as well. It returns an error that says
// what to do if the server can't be reached or refuses the credentials.
func (c *Clients) WaitForFoos(ctx context.Context, namespace string) error {
	logged := sets.New[metav1.StatusReason]()
	for {
		err := c.probeFoos(ctx, namespace)
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // the stop that was asked for is not a failure
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
	// shortestPollPeriod is how often the API server is asked.
	shortestPollPeriod = 2 * time.Second
	// longestPollPeriod bounds what the API server may ask for instead.
	longestPollPeriod = time.Minute
)

// pollPeriod returns how long to wait after an error: as long as the API server
// asks for, within bounds.
func pollPeriod(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(max(time.Duration(seconds)*time.Second, shortestPollPeriod), longestPollPeriod)
}

// probeFoos asks the API server for one Foo, as the informer is about to.
func (c *Clients) probeFoos(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, c.requestTimeout)
	defer cancel()
	_, err := c.Foos.SamplecontrollerV1alpha1().Foos(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// remedy says what an administrator can do about an error that is waited for; of any
// other it is "".
func remedy(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "the CustomResourceDefinition foos.samplecontroller.k8s.io is not installed: install it with 'kubectl apply -f artifacts/crd'"
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the permission is missing: grant it to the identity that this runs as (%v)", err)
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
