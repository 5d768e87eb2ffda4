// SPDX-License-Identifier: Apache-2.0

// A program's requests as the API server sees them: writes in its audit log, reads in the
// metrics of API Priority and Fairness. FlowSchemas make it count the account's reads by
// verb and resource.

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/test/audit"
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
	// flowTimeout bounds the wait until the server uses the FlowSchemas.
	flowTimeout = 30 * time.Second
)

// readVerbs and readResources are counted separately; all other reads count as "other".
var (
	readVerbs     = []string{"get", "list", "watch"}
	readResources = map[string]string{"foos": "samplecontroller.k8s.io", "deployments": "apps", "events": "*"}
)

// Counter counts the requests of one account.
type Counter struct {
	cluster *Cluster
	log     *audit.Log
	// since holds the reads that have been counted before.
	since map[string]float64
}

// Counts holds the requests between two readings.
type Counts struct {
	// ByKind counts requests by "verb resource". Requests that are neither reads of a
	// known kind nor writes are "other requests".
	ByKind map[string]float64
	// Refused counts the writes that the server refused, such as conflicts.
	Refused int
	// Writes are all writes of the account, including refused ones.
	Writes []audit.Write
}

// Count counts the requests of the measured program from now on.
func (c *Cluster) Count(ctx context.Context) (*Counter, error) {
	log, err := audit.OpenAtEnd(c.AuditLog())
	if err != nil {
		return nil, err
	}
	since, err := c.flows(ctx)
	return &Counter{cluster: c, log: log, since: since}, err
}

// Next returns the requests since the last call, or since Count.
func (c *Counter) Next(ctx context.Context) (Counts, error) {
	flows, err := c.cluster.flows(ctx)
	if err != nil {
		return Counts{}, err
	}
	all, err := c.log.Next()
	if err != nil {
		return Counts{}, err
	}
	counts := Counts{ByKind: map[string]float64{}}
	for kind, n := range flows {
		if n -= c.since[kind]; n > 0 {
			counts.ByKind[kind] = n
		}
	}
	c.since = flows
	// The log has each write, which the flows count as "other".
	others := counts.ByKind["other"]
	delete(counts.ByKind, "other")
	for _, write := range all {
		if write.User != User {
			continue
		}
		counts.Writes = append(counts.Writes, write)
		counts.ByKind[write.Verb+" "+write.Path()]++
		others--
		if !write.OK() {
			counts.Refused++
		}
	}
	if others > 0 {
		counts.ByKind["other requests"] = others
	}
	return counts, nil
}

// countFlows makes the server count the account's requests by verb and resource, and
// returns when it does.
func (c *Cluster) countFlows(ctx context.Context) error {
	schemas := []*flowcontrolv1.FlowSchema{flowSchema(otherFlow, 600, "*", "*", "*")}
	for _, verb := range readVerbs {
		for resource, group := range readResources {
			schemas = append(schemas, flowSchema(flowPrefix+verb+"."+resource, 500, verb, group, resource))
		}
	}
	for _, schema := range schemas {
		if _, err := c.Kube.FlowcontrolV1().FlowSchemas().Create(ctx, schema, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating FlowSchema %s: %w", schema.Name, err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, flowTimeout, true, func(ctx context.Context) (bool, error) {
		list, err := c.Kube.FlowcontrolV1().FlowSchemas().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		taken := 0
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, flowPrefix) && len(list.Items[i].Status.Conditions) > 0 {
				taken++
			}
		}
		return taken == len(schemas), nil
	})
}

func flowSchema(name string, precedence int32, verb, group, resource string) *flowcontrolv1.FlowSchema {
	rules := flowcontrolv1.PolicyRulesWithSubjects{
		Subjects: []flowcontrolv1.Subject{{
			Kind:           flowcontrolv1.SubjectKindServiceAccount,
			ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: accountNamespace, Name: accountName},
		}},
		ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
			Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource},
			ClusterScope: true, Namespaces: []string{flowcontrolv1.NamespaceEvery},
		}},
	}
	if name == otherFlow {
		rules.NonResourceRules = []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}
	}
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: priorityLevel},
			MatchingPrecedence:         precedence,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules:                      []flowcontrolv1.PolicyRulesWithSubjects{rules},
		},
	}
}

// flows returns the number of the account's requests so far by "verb resource", with all
// others as "other".
func (c *Cluster) flows(ctx context.Context) (map[string]float64, error) {
	text, err := c.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return parseFlows(text)
}

func parseFlows(text []byte) (map[string]float64, error) {
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
