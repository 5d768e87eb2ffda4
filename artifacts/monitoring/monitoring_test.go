// SPDX-License-Identifier: Apache-2.0

// Package monitoring contains only tests: of the alert rules, the dashboard and the manifests
// in this directory. test/e2e checks with a real scrape that the metrics they use exist.
package monitoring

import (
	"image"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/sample-controller/test/footest"
)

// ruleFile is a file of Prometheus rules.
type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

func parse[T any](t *testing.T, file string) T {
	t.Helper()
	var value T
	if err := yaml.Unmarshal([]byte(readText(t, file)), &value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return value
}

// published is the address of docs/operations.md in the shipped files. Its domain, the module's
// domain, is reserved for examples; hack/update-monitoring.sh can replace it.
const published = "https://example.com/sample-controller/blob/main/docs/operations.md"

// TestAlertsSayWhatToDo checks that each alert has what the person on call needs: a severity, a
// summary, a description and a runbook.
func TestAlertsSayWhatToDo(t *testing.T) {
	severities := map[string]bool{"critical": true, "warning": true, "info": true}
	manual, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil {
		t.Logf("Skipping the check of the runbooks: %v", err)
	}
	tests := readText(t, "rules.test.yaml")
	seen := map[string]bool{}
	for _, group := range parse[ruleFile](t, "rules.yaml").Groups {
		for _, rule := range group.Rules {
			if seen[rule.Alert] || !strings.HasPrefix(rule.Alert, "SampleController") {
				t.Errorf("%q: the name is used twice, or lacks the prefix SampleController", rule.Alert)
			}
			seen[rule.Alert] = true
			if !severities[rule.Labels["severity"]] {
				t.Errorf("%s has severity %q", rule.Alert, rule.Labels["severity"])
			}
			for _, annotation := range []string{"summary", "description"} {
				if text := rule.Annotations[annotation]; text == "" || !strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
					t.Errorf("%s: the %s is not a sentence: %q", rule.Alert, annotation, text)
				}
			}
			if want := published + "#alert-" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
				t.Errorf("%s has the runbook %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
			}
			if heading := "\n### Alert " + rule.Alert + "\n"; manual != nil && !strings.Contains(string(manual), heading) {
				t.Errorf("docs/operations.md has no heading %q", heading)
			}
			// Each alert has a test in which it fires and one in which it does not.
			if strings.Count(tests, "alertname: "+rule.Alert+"\n") < 2 {
				t.Errorf("%s: rules.test.yaml lacks a test in which it fires, or one in which it does not", rule.Alert)
			}
		}
	}
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

// dashboard is the part of Grafana's format that the tests read.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			IncludeAll bool   `json:"includeAll"`
			AllValue   string `json:"allValue"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID         int                      `json:"id"`
	Type       string                   `json:"type"`
	Title      string                   `json:"title"`
	Position   struct{ H, W, X, Y int } `json:"gridPos"`
	Datasource datasource               `json:"datasource"`
	Targets    []struct {
		RefID      string     `json:"refId"`
		Expr       string     `json:"expr"`
		Datasource datasource `json:"datasource"`
	} `json:"targets"`
}

type datasource struct {
	UID string `json:"uid"`
}

// area returns a panel's place on the grid.
func (p panel) area() image.Rectangle {
	return image.Rect(p.Position.X, p.Position.Y, p.Position.X+p.Position.W, p.Position.Y+p.Position.H)
}

func TestDashboardLayout(t *testing.T) {
	d := parse[dashboard](t, "dashboard.json")
	if d.UID == "" || d.Title == "" {
		t.Error("The dashboard lacks a title or a uid")
	}
	for i, p := range d.Panels {
		if p.area().Empty() || !p.area().In(image.Rect(0, 0, 24, math.MaxInt)) {
			t.Errorf("%s is at %+v, outside the grid of 24 columns", p.Title, p.Position)
		}
		for _, other := range d.Panels[:i] {
			if p.ID == other.ID {
				t.Errorf("%s and %s have the same id", p.Title, other.Title)
			}
			if p.area().Overlaps(other.area()) {
				t.Errorf("%s and %s overlap", p.Title, other.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%s does not use the chosen data source, or has no query", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || target.Expr == "" || target.RefID == "" {
				t.Errorf("%s: %+v does not use the chosen data source, or has no query", p.Title, target)
			}
		}
	}
}

// variable matches the variables that Grafana replaces.
var variable = regexp.MustCompile(`\$\w+`)

// TestDashboardExpressionsAreValid turns each expression into a rule, and checks the
// rules with promtool.
func TestDashboardExpressionsAreValid(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, p := range parse[dashboard](t, "dashboard.json").Panels {
		for _, target := range p.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			rules = append(rules, rule{Record: "dashboard:" + target.RefID, Expr: variable.ReplaceAllString(expr, "x")})
		}
	}
	content, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	footest.Must(t, err)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	footest.Must(t, os.WriteFile(file, content, 0o600))
	promtool(t, "check", "rules", "--lint=none", file)
}

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

// tryUpdate runs hack/update-monitoring.sh into a new directory.
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
	// The name of Grafana's variable and the comments do not change.
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
			t.Errorf("%s: the directory was created anyway", variables)
		}
	}
}
