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
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/fairqueue"
)

// newQueue makes client-go's work queue, in which namespaces take turns.
func newQueue(
	turns *fairqueue.Queue,
	limiter workqueue.TypedRateLimiter[cache.ObjectName],
	clock clock.WithTicker,
) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{
		Name: controllerName, Clock: clock, Queue: turns,
	})
	delayed := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[cache.ObjectName]{
		Name: controllerName, Clock: clock, Queue: ready,
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{
		Name: controllerName, Clock: clock, DelayingQueue: delayed,
	})
}
