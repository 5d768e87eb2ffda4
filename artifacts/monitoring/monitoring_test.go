// SPDX-License-Identifier: Apache-2.0

// Package monitoring contains only tests: of the alert rules, the dashboard and the manifests
// in this directory. test/e2e checks with a real scrape that the metrics they use exist.
package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/sample-controller/test/footest"
)

// published is the address of docs/operations.md in the shipped files. Its domain, the module's
// domain, is reserved for examples; hack/update-monitoring.sh can replace it.
const published = "https://example.com/sample-controller/blob/main/docs/operations.md"

var manual = filepath.Join("..", "..", "docs", "operations.md")

func readText(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	footest.Must(t, err)
	return string(content)
}

// promtool runs promtool, and skips the test if there is none.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	own, err := filepath.Abs(filepath.Join("..", "..", "bin", "promtool"))
	footest.Must(t, err)
	for _, candidate := range []string{own, "promtool"} {
		if path, err := exec.LookPath(candidate); err == nil {
			if output, err := exec.CommandContext(t.Context(), path, arguments...).CombinedOutput(); err != nil {
				t.Errorf("promtool %v: %v\n%s", arguments, err, output)
			}
			return
		}
	}
	t.Skip("promtool is not installed")
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, "check", "rules", "rules.yaml")
	promtool(t, "test", "rules", "rules.test.yaml", "fleet.test.yaml")
}

// TestAlertsAreTestedAndDocumented: rules.test.yaml compares the labels and annotations of each
// alert that fires.
func TestAlertsAreTestedAndDocumented(t *testing.T) {
	rules, tests, text := readText(t, "rules.yaml"), readText(t, "rules.test.yaml"), readText(t, manual)
	alerts := regexp.MustCompile(`- alert: (\w+)\n`).FindAllStringSubmatch(rules, -1)
	if len(alerts) == 0 {
		t.Error("rules.yaml has no alert")
	}
	for _, match := range alerts {
		alert := match[1]
		if runbook := published + "#alert-" + strings.ToLower(alert) + "\n"; !strings.Contains(rules, "runbook_url: "+runbook) {
			t.Errorf("%s lacks the runbook %s", alert, runbook)
		}
		if heading := "\n### Alert " + alert + "\n"; !strings.Contains(text, heading) {
			t.Errorf("docs/operations.md has no heading %q", heading)
		}
		if strings.Count(tests, "alertname: "+alert+"\n") < 2 {
			t.Errorf("%s: rules.test.yaml lacks a test in which it fires, or one in which it does not", alert)
		}
	}
}

// TestTheExpressionForUnseenClustersIsTested keeps the manual and fleet.test.yaml together.
func TestTheExpressionForUnseenClustersIsTested(t *testing.T) {
	_, after, found := strings.Cut(readText(t, manual), "```promql\n")
	documented, _, _ := strings.Cut(after, "\n")
	if !found || !strings.Contains(readText(t, "fleet.test.yaml"), "expr: "+documented+"\n") {
		t.Errorf("fleet.test.yaml does not test the expression of docs/operations.md: %q", documented)
	}
}

// dashboard is the part of Grafana's format that the tests read.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, AllValue string }
	}
	Panels []struct {
		Title      string
		Datasource datasource
		Targets    []struct {
			Expr       string
			Datasource datasource
		}
	}
}

type datasource struct{ UID string }

func TestDashboardSelectsTheChosenClusters(t *testing.T) {
	selector, grouping := regexp.MustCompile(`\{([^}]*)\}`), regexp.MustCompile(`\bby \(([^)]*)\)`)
	var shipped dashboard
	footest.Must(t, yaml.Unmarshal([]byte(readText(t, "dashboard.json")), &shipped))
	var rules strings.Builder
	for _, panel := range shipped.Panels {
		for _, query := range panel.Targets {
			if chosen := (datasource{"${datasource}"}); panel.Datasource != chosen || query.Datasource != chosen {
				t.Errorf("%s does not use the chosen data source: %+v", panel.Title, query)
			}
			for _, found := range selector.FindAllStringSubmatch(query.Expr, -1) {
				if !strings.Contains(found[1], `job="sample-controller", cluster=~"$cluster", namespace=~"$namespace"`) {
					t.Errorf("%s also shows other clusters or namespaces: %s", panel.Title, found[0])
				}
			}
			for _, found := range grouping.FindAllStringSubmatch(query.Expr, -1) {
				if strings.Contains(found[1], "pod") && !strings.Contains(found[1], "cluster") {
					t.Errorf("%s merges Pods of different clusters: %s", panel.Title, query.Expr)
				}
			}
			fmt.Fprintf(&rules, "  - {record: \"dashboard:query\", expr: %q}\n", strings.ReplaceAll(query.Expr, "$__rate_interval", "5m"))
		}
	}
	for _, variable := range shipped.Templating.List {
		// "All" matches any value, and series without the label.
		if variable.Type == "query" && variable.AllValue != ".*" {
			t.Errorf("%s has no choice \"All\" that also matches series without the label", variable.Name)
		}
	}
	// Each expression as a rule, so that promtool says whether it is valid.
	file := filepath.Join(t.TempDir(), "rules.yaml")
	footest.Must(t, os.WriteFile(file, []byte("groups:\n- name: dashboard\n  rules:\n"+rules.String()), 0o600))
	promtool(t, "check", "rules", "--lint=none", file)
}

// update runs hack/update-monitoring.sh into a new directory, which it returns even if the script
// fails.
func update(t *testing.T, environment ...string) (folder string, err error) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "made")
	command := exec.CommandContext(t.Context(), filepath.Join("..", "..", "hack", "update-monitoring.sh"), folder)
	command.Env = append(os.Environ(), environment...)
	if output, err := command.CombinedOutput(); err != nil {
		return folder, fmt.Errorf("%w: %s", err, output)
	}
	return folder, nil
}

func TestUpdateWithoutVariablesChangesNothing(t *testing.T) {
	folder, err := update(t, "CLUSTER_LABEL=", "RUNBOOKS=")
	footest.Must(t, err)
	for _, file := range []string{"rules.yaml", "prometheus-rule.yaml", "dashboard.json", "kustomization.yaml", "scraper.yaml", "service-monitor.yaml"} {
		if readText(t, filepath.Join(folder, file)) != readText(t, file) {
			t.Errorf("%s is not up to date: run hack/update-monitoring.sh", file)
		}
	}
}

func TestUpdateSetsClusterLabelAndRunbooks(t *testing.T) {
	const runbooks = "https://wiki.example.org/run?page=books"
	folder, err := update(t, "CLUSTER_LABEL=k8s_cluster", "RUNBOOKS="+runbooks)
	footest.Must(t, err)
	made := readText(t, filepath.Join(folder, "prometheus-rule.yaml")) + readText(t, filepath.Join(folder, "dashboard.json"))
	// The name of Grafana's variable and the comments do not change.
	before := regexp.MustCompile(`\bcluster\b|` + regexp.QuoteMeta(published))
	kept := strings.NewReplacer("$cluster", "", `"name": "cluster"`, "")
	for line := range strings.Lines(made) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") && before.MatchString(kept.Replace(line)) {
			t.Errorf("The label or the address is still the default in %s", line)
		}
	}
	// With the new label, the alerts fire as before.
	fleet := regexp.MustCompile(`\bcluster(=|: |,)`).ReplaceAllString(readText(t, "fleet.test.yaml"), "k8s_cluster$1")
	file := filepath.Join(folder, "fleet.test.yaml")
	footest.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(fleet, published, runbooks)), 0o600))
	promtool(t, "test", "rules", file)
}

func TestUpdateRefusesInvalidVariables(t *testing.T) {
	for _, variables := range []string{"CLUSTER_LABEL=k8s-cluster", "CLUSTER_LABEL=a b", "RUNBOOKS=docs/operations.md", "RUNBOOKS=https://a|b", "RUNBOOKS=https://a#b"} {
		folder, err := update(t, variables)
		if err == nil || !strings.Contains(err.Error(), variables+": must be") {
			t.Errorf("%s: %v", variables, err)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s: the directory was created anyway", variables)
		}
	}
}
