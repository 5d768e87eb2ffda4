// SPDX-License-Identifier: Apache-2.0

// A program's requests as the API server sees them: writes in its audit log, all in the
// metrics of API Priority and Fairness, which count the account's requests by a FlowSchema.

package measure

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
	"example.com/sample-controller/test/bench/internal/results"
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

// reads is the kind of all requests that are no writes.
const reads = "reads"

// requests are those of the measured program since some moment.
type requests struct {
	session *session
	log     *audit.Log
	// before is how many the server had counted at that moment.
	before float64
	// writes are all that have been read from the log, including refused ones.
	writes []audit.Write
}

// record returns the requests of the measured program from now on.
func (s *session) record(ctx context.Context) (*requests, error) {
	log, err := audit.OpenAtEnd(s.AuditLog())
	if err != nil {
		return nil, err
	}
	before, err := s.dispatched(ctx)
	return &requests{session: s, log: log, before: before}, err
}

// next returns the writes since the last call.
func (r *requests) next() ([]audit.Write, error) {
	all, err := r.log.Next()
	written := slices.DeleteFunc(all, func(write audit.Write) bool { return write.User != accountUser })
	r.writes = append(r.writes, written...)
	return written, err
}

// count counts the writes by "verb resource" and the reads, and the writes that the server
// refused, such as conflicts.
func (r *requests) count(ctx context.Context) (calls results.Calls, refused int, err error) {
	all, err := r.session.dispatched(ctx)
	if err != nil {
		return nil, 0, err
	}
	if _, err := r.next(); err != nil {
		return nil, 0, err
	}
	calls = results.Calls{}
	for _, write := range r.writes {
		calls[write.Verb+" "+write.Path()]++
		if !write.OK() {
			refused++
		}
	}
	if others := all - r.before - float64(len(r.writes)); others > 0 {
		calls[reads] = others
	}
	return calls, refused, nil
}

// converged waits for Foos to converge, and returns when each did, by namespace and name. It
// returns those so far, and an error, when ctx or the program ends.
//
// Without kube-controller-manager a Foo has converged when the program has created a
// Deployment with the name that the Foo asks for, which is the Foo's own, and has then written
// the Foo's status. With kube-controller-manager it has converged when its status reports that
// its Pod is available.
func (r *requests) converged(
	ctx context.Context, running *process, foos []*samplev1alpha1.Foo,
) (times map[string]time.Time, err error) {
	times = map[string]time.Time{}
	open, created := sets.New[string](), sets.New[string]()
	for _, foo := range foos {
		open.Insert(keyOf(foo))
	}
	err = wait.PollUntilContextCancel(ctx, readInterval, true, func(context.Context) (bool, error) {
		writes, err := r.next()
		for _, write := range writes {
			key := write.Namespace + "/" + write.Name
			switch {
			case !write.OK() || !open.Has(key):
			case write.Path() == "deployments" && write.Creates():
				created.Insert(key)
			case write.Path() == "foos/status" && (isAvailable(write.Response) || !r.session.whole && created.Has(key)):
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
