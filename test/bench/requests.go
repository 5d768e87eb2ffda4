// SPDX-License-Identifier: Apache-2.0

// A program's requests as the API server sees them: writes in its audit log, all in the
// metrics of API Priority and Fairness, which count the account's requests by a FlowSchema.

package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/audit"
)

const (
	// accountFlow is the FlowSchema of the account's requests, in manifests/cluster.yaml.
	accountFlow = "bench"
	// dispatched is the metric of requests that the server has started, by FlowSchema.
	dispatched = "apiserver_flowcontrol_dispatched_requests_total"
	// readInterval is the time between two readings of the audit log. It does not affect the
	// times of convergence, which are in the log.
	readInterval = 50 * time.Millisecond
)

// requests are the writes of the measured program since some moment.
type requests struct {
	whole bool
	// namespace is the only one whose writes count; "" means all.
	namespace string
	log       *audit.Log
	// writes are all that have been read from the log, including refused ones.
	writes []audit.Write
}

// record returns the writes of the measured program from now on, in one namespace or all.
func (s *session) record(namespace string) (*requests, error) {
	log, err := audit.OpenAtEnd(s.AuditLog())
	return &requests{whole: s.whole, namespace: namespace, log: log}, err
}

// next returns the writes since the last call.
func (r *requests) next() ([]audit.Write, error) {
	all, err := r.log.Next()
	written := slices.DeleteFunc(all, func(write audit.Write) bool {
		return write.User != accountUser || r.namespace != "" && r.namespace != write.Namespace
	})
	r.writes = append(r.writes, written...)
	return written, err
}

// tell notes how many of the writes so far are of each kind, and how many the server refused, such
// as conflicts.
func (r *requests) tell(found figures, each float64) {
	found[writes], found[refused] = 0, 0
	for _, write := range r.writes {
		if write.Namespace == quietNamespace { // those for the Foo of beside do not count
			continue
		}
		found[writes] += 1 / each
		found[write.Verb+" "+write.Path()] += 1 / each
		if !write.OK() {
			found[refused] += 1 / each
		}
	}
}

// events returns how many requests for Events there were so far.
func (r *requests) events() (n float64) {
	for _, write := range r.writes {
		if write.Path() == "events" {
			n++
		}
	}
	return n
}

// converged waits for Foos to converge, and returns when each did, by namespace and name. It
// returns those so far, and an error, when ctx or the program ends.
//
// Without kube-controller-manager a Foo has converged when the program has created a
// Deployment with the name that the Foo asks for, which is the Foo's own, and has then written
// the Foo's status. With kube-controller-manager it has converged when its status reports that
// its Pod is available.
func (r *requests) converged(
	ctx context.Context, running *process, waiting []*samplev1alpha1.Foo,
) (times map[string]time.Time, err error) {
	times = map[string]time.Time{}
	open, created := sets.New[string](), sets.New[string]()
	for _, foo := range waiting {
		open.Insert(keyOf(foo))
	}
	err = wait.PollUntilContextCancel(ctx, readInterval, true, func(context.Context) (bool, error) {
		written, err := r.next()
		for _, write := range written {
			key := write.Namespace + "/" + write.Name
			switch {
			case !write.OK() || !open.Has(key):
			case write.Path() == "deployments" && write.Creates():
				created.Insert(key)
			case write.Path() == "foos/status" && (isAvailable(write.Response) || !r.whole && created.Has(key)):
				times[key] = write.Done
				open.Delete(key)
			}
		}
		if err == nil && len(open) > 0 {
			err = running.Err()
		}
		return len(open) == 0, err
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return times, fmt.Errorf("%s: %d Foos have converged, %d have not: %w", running.Name, len(times), len(open), err)
	}
	return times, nil
}

func keyOf(foo *samplev1alpha1.Foo) string { return foo.Namespace + "/" + foo.Name }

// isAvailable reports whether a Foo's status says that its Pod is available.
func isAvailable(foo *audit.Object) bool {
	return foo != nil && foo.Status.AvailableReplicas != nil && *foo.Status.AvailableReplicas == 1
}

// dispatched returns the number of the account's requests so far.
func (s *session) dispatched(ctx context.Context) (n float64, err error) {
	text, err := s.kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, fmt.Errorf("parsing metrics: %w", err)
	}
	for _, metric := range families[dispatched].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "flow_schema" && label.GetValue() == accountFlow {
				n += metric.GetCounter().GetValue()
			}
		}
	}
	return n, nil
}
