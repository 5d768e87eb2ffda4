// SPDX-License-Identifier: Apache-2.0

// Flows: FlowSchemas that make the API server count an account's reads by verb and
// resource.

package calls

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
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

// CountFlows makes the server count an account's requests by verb and resource, and
// returns when it does.
func CountFlows(ctx context.Context, client kubernetes.Interface, namespace, account string) error {
	subject := flowcontrolv1.Subject{
		Kind:           flowcontrolv1.SubjectKindServiceAccount,
		ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: namespace, Name: account},
	}
	schemas := []*flowcontrolv1.FlowSchema{flowSchema(otherFlow, 600, subject, "*", "*", "*")}
	for _, verb := range readVerbs {
		for resource, group := range readResources {
			schemas = append(schemas, flowSchema(flowPrefix+verb+"."+resource, 500, subject, verb, group, resource))
		}
	}
	for _, schema := range schemas {
		if _, err := client.FlowcontrolV1().FlowSchemas().Create(ctx, schema, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating FlowSchema %s: %w", schema.Name, err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, flowTimeout, true, func(ctx context.Context) (bool, error) {
		list, err := client.FlowcontrolV1().FlowSchemas().List(ctx, metav1.ListOptions{})
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

func flowSchema(name string, precedence int32, subject flowcontrolv1.Subject, verb, group, resource string) *flowcontrolv1.FlowSchema {
	rules := flowcontrolv1.PolicyRulesWithSubjects{
		Subjects: []flowcontrolv1.Subject{subject},
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

// Flows returns the number of the account's requests so far by "verb resource", with all
// others as "other".
func Flows(ctx context.Context, client kubernetes.Interface) (map[string]float64, error) {
	text, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return parseFlows(text)
}

func parseFlows(text []byte) (map[string]float64, error) {
	family, err := Family(text, dispatched)
	if err != nil {
		return nil, err
	}
	flows := map[string]float64{}
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			if kind, ours := strings.CutPrefix(label.GetValue(), flowPrefix); label.GetName() == "flow_schema" && ours {
				flows[strings.Replace(kind, ".", " ", 1)] += metric.GetCounter().GetValue()
			}
		}
	}
	return flows, nil
}

// Family returns the metrics of one name from the text that a server serves, or nil if
// there are none.
func Family(text []byte, name string) (*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parsing metrics: %w", err)
	}
	return families[name], nil
}
