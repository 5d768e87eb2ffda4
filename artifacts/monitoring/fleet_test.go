// SPDX-License-Identifier: Apache-2.0

// Tests of the alerts and the dashboard with several clusters.

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
)

// grouping matches the labels by which an expression aggregates or compares.
var grouping = regexp.MustCompile(`\b(?:by|on|ignoring|without) \(([^)]*)\)`)

// TestAlertsKeepClustersApart checks the labels of every aggregation: one that drops the
// label of the cluster lets a healthy cluster hide an unhealthy one.
func TestAlertsKeepClustersApart(t *testing.T) {
	aggregation := regexp.MustCompile(`\b(sum|min|max|count|avg|group|topk|quantile)\b(?: by)? \(`)
	for _, group := range parse[ruleFile](t, "rules.yaml").Groups {
		for _, rule := range group.Rules {
			groupings := grouping.FindAllStringSubmatch(rule.Expr, -1)
			if len(groupings) < len(aggregation.FindAllString(rule.Expr, -1)) || len(groupings) == 0 {
				t.Errorf("%s aggregates over everything: %s", rule.Alert, rule.Expr)
			}
			for _, found := range groupings {
				// A controller that no Prometheus has seen has no cluster label.
				if rule.Alert == "SampleControllerDown" && found[0] == "on (job)" {
					continue
				}
				if !strings.HasPrefix(found[1], "cluster, job, namespace, service") {
					t.Errorf("%s does not keep cluster, namespace and Service: %s", rule.Alert, found[0])
				}
			}
		}
	}
}

func TestDashboardSelectsTheChosenClusters(t *testing.T) {
	selector := regexp.MustCompile(`\w+\{([^}]*)\}`)
	for _, p := range parse[dashboard](t, "dashboard.json").Panels {
		for _, target := range p.Targets {
			for _, found := range selector.FindAllStringSubmatch(target.Expr, -1) {
				if !strings.HasPrefix(found[1], `job="sample-controller", cluster=~"$cluster", namespace=~"$namespace"`) {
					t.Errorf("%s also shows other clusters or namespaces: %s", p.Title, found[0])
				}
			}
			for _, found := range grouping.FindAllStringSubmatch(target.Expr, -1) {
				if labels := strings.Split(found[1], ", "); slices.Contains(labels, "pod") && !slices.Contains(labels, "cluster") {
					t.Errorf("%s merges Pods of different clusters: %s", p.Title, target.Expr)
				}
			}
		}
	}
	var names []string
	for _, variable := range parse[dashboard](t, "dashboard.json").Templating.List {
		names = append(names, variable.Name)
		if variable.Name == "datasource" && variable.Type != "datasource" {
			t.Errorf("The variable for the data source has the type %s", variable.Type)
		}
		// "All" matches any value, and series without the label.
		if variable.Type == "query" && (!variable.IncludeAll || variable.AllValue != ".*") {
			t.Errorf("%s has no choice \"All\" that also matches series without the label", variable.Name)
		}
	}
	if !slices.Equal(names, []string{"datasource", "cluster", "namespace"}) {
		t.Errorf("The variables are %v", names)
	}
}

// TestTheExpressionForUnseenClustersIsTested keeps the manual and fleet.test.yaml together.
func TestTheExpressionForUnseenClustersIsTested(t *testing.T) {
	_, after, found := strings.Cut(readText(t, filepath.Join("..", "..", "docs", "operations.md")), "```promql\n")
	documented, _, _ := strings.Cut(after, "\n")
	if !found || !strings.Contains(readText(t, "fleet.test.yaml"), "expr: "+documented+"\n") {
		t.Errorf("fleet.test.yaml does not test the expression of docs/operations.md: %q", documented)
	}
}

// tryUpdate runs hack/update-monitoring.sh into a new folder.
func tryUpdate(t *testing.T, environment ...string) (folder, output string, err error) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "made")
	command := exec.CommandContext(t.Context(), filepath.Join("..", "..", "hack", "update-monitoring.sh"), folder)
	command.Env = append(os.Environ(), environment...)
	printed, err := command.CombinedOutput()
	return folder, string(printed), err
}

func update(t *testing.T, environment ...string) (folder string) {
	t.Helper()
	folder, output, err := tryUpdate(t, environment...)
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return folder
}

func TestUpdateWithoutVariablesChangesNothing(t *testing.T) {
	folder := update(t, "CLUSTER_LABEL=", "RUNBOOKS=")
	for _, file := range []string{"rules.yaml", "prometheus-rule.yaml", "dashboard.json", "kustomization.yaml", "scraper.yaml", "service-monitor.yaml"} {
		if got, want := readText(t, filepath.Join(folder, file)), readText(t, file); got != want {
			t.Errorf("%s is not up to date: run hack/update-monitoring.sh", file)
		}
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	footest.Must(t, err)
	return string(content)
}

func TestUpdateSetsClusterLabelAndRunbooks(t *testing.T) {
	folder := update(t, "CLUSTER_LABEL=k8s_cluster", "RUNBOOKS=https://wiki.example.org/run?page=books")
	for _, group := range parse[ruleFile](t, filepath.Join(folder, "rules.yaml")).Groups {
		for _, rule := range group.Rules {
			anchor := "#alert-" + strings.ToLower(rule.Alert)
			if want := "https://wiki.example.org/run?page=books" + anchor; rule.Annotations["runbook_url"] != want {
				t.Errorf("%s has the runbook %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
			}
		}
	}
	made := readText(t, filepath.Join(folder, "prometheus-rule.yaml")) + readText(t, filepath.Join(folder, "dashboard.json"))
	// The name of Grafana's variable and the comments stay.
	label := regexp.MustCompile(`\bcluster\b`)
	kept := strings.NewReplacer("$cluster", "", `"name": "cluster"`, "")
	for line := range strings.Lines(made) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") && label.MatchString(kept.Replace(line)) {
			t.Errorf("The label is still cluster in %s", line)
		}
	}
	parse[dashboard](t, filepath.Join(folder, "dashboard.json")) // it is still JSON

	// With the new label, the alerts fire as before.
	fleet := strings.NewReplacer(`cluster="`, `k8s_cluster="`, "cluster: ", "k8s_cluster: ", "(alertname, cluster,", "(alertname, k8s_cluster,",
		"on (cluster,", "on (k8s_cluster,",
		published, "https://wiki.example.org/run?page=books").Replace(readText(t, "fleet.test.yaml"))
	file := filepath.Join(folder, "fleet.test.yaml")
	footest.Must(t, os.WriteFile(file, []byte(fleet), 0o600))
	promtool(t, "test", "rules", file)
}

func TestUpdateRefusesInvalidVariables(t *testing.T) {
	for _, variables := range []string{"CLUSTER_LABEL=k8s-cluster", "CLUSTER_LABEL=a b", "RUNBOOKS=docs/operations.md", "RUNBOOKS=https://a|b", "RUNBOOKS=https://a#b"} {
		folder, output, err := tryUpdate(t, variables)
		if err == nil || !strings.Contains(output, variables+": must be") {
			t.Errorf("%s: %v, %s", variables, err, output)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s: the folder was made nevertheless", variables)
		}
	}
}
