// SPDX-License-Identifier: Apache-2.0

// Command queue shows what client-go's work queue does with keys that are added
// while they wait, and while a worker has them. It is for the tour, docs/tour.md.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/util/workqueue"
)

func main() {
	show(os.Stdout)
}

func show(out io.Writer) {
	queue := workqueue.NewTyped[string]()
	add := func(key string, times int) {
		for range times {
			queue.Add(key)
		}
		fmt.Fprintf(out, "%d events for %s: %d waiting\n", times, key, queue.Len())
	}
	add("default/a", 1000)
	add("default/b", 1)
	first, _ := queue.Get()
	fmt.Fprintf(out, "a worker takes %s: %d waiting\n", first, queue.Len())
	add("default/a", 1000)
	second, _ := queue.Get()
	fmt.Fprintf(out, "another worker takes %s: %d waiting\n", second, queue.Len())
	queue.Done(first)
	fmt.Fprintf(out, "the first is done with %s: %d waiting\n", first, queue.Len())
}
