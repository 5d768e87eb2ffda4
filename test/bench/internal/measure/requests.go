// SPDX-License-Identifier: Apache-2.0

// A program's requests as the API server sees them: writes in its audit log, reads in the
// metrics of API Priority and Fairness. FlowSchemas make it count the account's reads by
// verb and resource.

package measure

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/test/bench/internal/results"
)

const (
	// priorityLevel is the level that the requests of a service account have by default.
	priorityLevel = "workload-low"
	// flowPrefix is the prefix of our FlowSchemas' names, before verb and resource.
	flowPrefix = "bench."
	// otherFlow matches all requests that no other FlowSchema of ours does: mainly
	// writes.
	otherFlow = flowPrefix + "other"
	// dispatched is the metric of requests that the server has started, by FlowSchema.
	dispatched = "apiserver_flowcontrol_dispatched_requests_total"
	// readInterval is the time between two readings of the audit log. It does not affect the
	// times of convergence, which are in the log.
	readInterval = 50 * time.Millisecond
)

// readVerbs and readResources are counted separately; all other reads count as "other".
var (
	readVerbs     = []string{"get", "list", "watch"}
	readResources = map[string]string{"foos": "samplecontroller.k8s.io", "deployments": "apps", "events": "*"}
)

// requests are those of the measured program since some moment.
type requests struct {
	session *session
	log     *audit.Log
	// before holds what the server had counted at that moment.
	before map[string]float64
	// writes are all that have been read from the log, including refused ones.
	writes []audit.Write
}

// record returns the requests of the measured program from now on.
func (s *session) record(ctx context.Context) (*requests, error) {
	log, err := audit.OpenAtEnd(s.AuditLog())
	if err != nil {
		return nil, err
	}
	before, err := s.flows(ctx)
	return &requests{session: s, log: log, before: before}, err
}

// next returns the writes since the last call.
func (r *requests) next() ([]audit.Write, error) {
	all, err := r.log.Next()
	written := slices.DeleteFunc(all, func(write audit.Write) bool { return write.User != accountUser })
	r.writes = append(r.writes, written...)
	return written, err
}

// count counts the requests by "verb resource", and the writes that the server refused, such
// as conflicts. Requests that are neither reads of a known kind nor writes are "other
// requests".
func (r *requests) count(ctx context.Context) (calls results.Calls, refused int, err error) {
	flows, err := r.session.flows(ctx)
	if err != nil {
		return nil, 0, err
	}
	if _, err := r.next(); err != nil {
		return nil, 0, err
	}
	calls = results.Calls{}
	for kind, n := range flows {
		if n -= r.before[kind]; n > 0 {
			calls[kind] = n
		}
	}
	// The log has each write, which the flows count as "other".
	others := calls["other"] - float64(len(r.writes))
	delete(calls, "other")
	for _, write := range r.writes {
		calls[write.Verb+" "+write.Path()]++
		if !write.OK() {
			refused++
		}
	}
	if others > 0 {
		calls["other requests"] = others
	}
	return calls, refused, nil
}

// lacks is what a Foo needs to have converged.
type lacks struct{ deployment, status, available bool }

// converged waits for Foos to converge, and returns when each did, by namespace and name. It
// returns those so far, and an error, when ctx or the program ends.
//
// Without kube-controller-manager a Foo has converged when the program has created a
// Deployment with the name that the Foo asks for, which is the Foo's own, and has written the
// Foo's status. With kube-controller-manager it has converged when its status reports that
// its Pod is available.
func (r *requests) converged(
	ctx context.Context, running *process, foos []*samplev1alpha1.Foo,
) (times map[string]time.Time, err error) {
	whole := r.session.whole
	times, open := map[string]time.Time{}, map[string]lacks{}
	for _, foo := range foos {
		open[keyOf(foo)] = lacks{deployment: !whole, status: !whole, available: whole}
	}
	err = wait.PollUntilContextCancel(ctx, readInterval, true, func(context.Context) (bool, error) {
		writes, err := r.next()
		for _, write := range writes {
			if completes(open, write) {
				times[write.Namespace+"/"+write.Name] = write.Done
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

// completes notes what a write does for an open Foo, and reports whether that was all that it
// lacked.
func completes(open map[string]lacks, write audit.Write) bool {
	key := write.Namespace + "/" + write.Name
	left, isOpen := open[key]
	if !isOpen || !write.OK() {
		return false
	}
	switch write.Verb + " " + write.Path() {
	case "create deployments":
		left.deployment = false
	case "update foos/status", "patch foos/status":
		left.status = false
		left.available = left.available && !isAvailable(write.Response)
	}
	open[key] = left
	if left != (lacks{}) {
		return false
	}
	delete(open, key)
	return true
}

// isAvailable reports whether a Foo's status says that its Pod is available.
func isAvailable(foo *audit.Object) bool {
	return foo != nil && foo.Status.AvailableReplicas != nil && *foo.Status.AvailableReplicas == 1
}

// lastFirstEvent returns when the last of the Foos got its first Event, or the zero time
// if one has none. The name of an Event starts with that of its Foo.
func (r *requests) lastFirstEvent(foos []*samplev1alpha1.Foo) (last time.Time) {
	first := map[string]time.Time{}
	for _, write := range r.writes {
		foo, _, _ := strings.Cut(write.Name, ".")
		key := write.Namespace + "/" + foo
		if _, found := first[key]; !found && write.Path() == "events" && write.Verb == "create" && write.OK() {
			first[key] = write.Done
		}
	}
	for _, foo := range foos {
		at, found := first[keyOf(foo)]
		if !found {
			return time.Time{}
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// countFlows makes the server count the account's requests by verb and resource, and
// returns when it does.
func (s *session) countFlows(ctx context.Context) error {
	schemas := []*flowcontrolv1.FlowSchema{flowSchema(otherFlow, 600, "*", "*", "*")}
	for _, verb := range readVerbs {
		for resource, group := range readResources {
			schemas = append(schemas, flowSchema(flowPrefix+verb+"."+resource, 500, verb, group, resource))
		}
	}
	for _, schema := range schemas {
		if _, err := s.kube.FlowcontrolV1().FlowSchemas().Create(ctx, schema, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating FlowSchema %s: %w", schema.Name, err)
		}
	}
	return s.kubectl(ctx, "wait", "--for=condition=Dangling=False", "flowschemas", "--all", "--timeout=30s")
}

func flowSchema(name string, precedence int32, verb, group, resource string) *flowcontrolv1.FlowSchema {
	rules := flowcontrolv1.PolicyRulesWithSubjects{
		Subjects: []flowcontrolv1.Subject{{
			Kind:           flowcontrolv1.SubjectKindServiceAccount,
			ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: account, Name: account},
		}},
		ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
			Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource},
			ClusterScope: true, Namespaces: []string{flowcontrolv1.NamespaceEvery},
		}},
	}
	if name == otherFlow {
		rules.NonResourceRules = []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}
	}
	byUser := &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType}
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: priorityLevel},
			MatchingPrecedence:         precedence,
			DistinguisherMethod:        byUser,
			Rules:                      []flowcontrolv1.PolicyRulesWithSubjects{rules},
		},
	}
}

// flows returns the number of the account's requests so far by "verb resource", with all
// others as "other".
func (s *session) flows(ctx context.Context) (map[string]float64, error) {
	text, err := s.kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parsing metrics: %w", err)
	}
	flows := map[string]float64{}
	for _, metric := range families[dispatched].GetMetric() {
		for _, label := range metric.GetLabel() {
			if kind, ours := strings.CutPrefix(label.GetValue(), flowPrefix); label.GetName() == "flow_schema" && ours {
				flows[strings.Replace(kind, ".", " ", 1)] += metric.GetCounter().GetValue()
			}
		}
	}
	return flows, nil
}
