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

package election

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// watchLease gives news of each change of the Lease until ctx is done. It is for
// speed alone: what it misses is found a RetryPeriod later.
func (c *Config) watchLease(ctx context.Context, news chan<- struct{}) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		watcher, err := c.Client.Leases(c.Namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, c.Name).String(),
		})
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Watching the Lease failed: taking over may take some seconds longer",
				"lease", klog.KRef(c.Namespace, c.Name), "err", err)
			return
		}
		defer watcher.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case _, open := <-watcher.ResultChan():
				if !open {
					return
				}
			}
			select {
			case news <- struct{}{}:
			default: // there is some already
			}
		}
	}, c.RetryPeriod)
}
