// SPDX-License-Identifier: Apache-2.0

// Each shipped permission is needed, no other is, and the manual says what each allows: the test takes
// the controller through all that it does, with each kind of children.

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"example.com/sample-controller/test/footest"
)

// TestEachPermissionIsNeeded checks that the shipped permissions are sufficient for all steps, and
// that the controller makes use of each.
func TestEachPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	for variant, folder := range map[string]string{"all namespaces": deployFolder + "/permissions", "one namespace": namespacedFolder} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			objects, err := cluster.accountIn(t.Context(), folder)
			footest.Must(t, err)
			tr := newTrial(t, objects)
			tr.takeAllSteps(t)
			awaitThat(t, "the controller has used each of its permissions", tr.isUsed)
			tr.mu.Lock()
			defer tr.mu.Unlock()
			if len(tr.refused) > 0 {
				t.Errorf("The API server refused %v", tr.refused)
			}
		})
	}
	for _, verb := range []string{"list", "watch"} {
		t.Run("not to "+verb+" at the start", func(t *testing.T) {
			t.Parallel()
			waitsForPermission(t, verb)
		})
	}
}

// isUsed returns an error that names a permission which the controller has not used.
func (tr *trial) isUsed(context.Context) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, g := range tr.account.granted {
		isUse := func(r authorizationv1.ResourceAttributes) bool {
			return r.Verb == g.Verb && r.Group == g.Group && r.Resource == g.Resource && r.Subresource == g.Subresource &&
				(g.Name == "" || r.Name == g.Name) && (g.Namespace == "" || r.Namespace == g.Namespace)
		}
		// An admission plugin asks for that of finalizers: a child delays the deletion of its owner.
		if g.Subresource != "finalizers" && !slices.ContainsFunc(tr.requests, isUse) {
			return fmt.Errorf("%s: it does not %s in %q", g.role, g, g.Group)
		}
	}
	return nil
}

// waitsForPermission starts a controller that lacks the permission to list, or to watch,
// everything. It says of each resource once what is missing, and starts when it has the permission.
func waitsForPermission(t *testing.T, verb string) {
	t.Helper()
	objects, err := cluster.accountIn(t.Context(), deployFolder+"/permissions")
	footest.Must(t, err)
	text, err := json.Marshal(objects)
	footest.Must(t, err)
	var without manifests
	footest.Must(t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), `"`+verb+`"`, `"deletecollection"`)), &without))
	tr := newTrial(t, without)
	tr.start(t)
	p, resources := tr.controllers[0], strings.Split(allResources(), ",")
	for _, resource := range resources {
		p.awaitLog(t, fmt.Sprintf("the permission to %s %s in the namespace %s is missing", verb, resource, tr.foos.name), 1)
	}
	_, err = tr.home.apply(t.Context(), t.TempDir(), objects, tr.foos.name)
	footest.Must(t, err)
	p.awaitLog(t, working, 1)
	if p.log.Count("is missing") > len(resources) || p.log.Count("Failed to watch") > 0 {
		t.Errorf("The log has a missing permission more than once, or something of informers:\n%s", p.log)
	}
}

// TestTheManualSaysWhatAThiefCanDo compares the rows of the manual with the permissions of
// the controller's account and with the flow schema, verb by verb.
func TestTheManualSaysWhatAThiefCanDo(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join(moduleRoot, "docs", "operations.md"))
	if err != nil {
		t.Skipf("the documents are missing: %v", err)
	}
	_, table, _ := strings.Cut(string(manual), "| verbs | on | so they can |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	said := sets.New[string]()
	for row := range strings.SplitSeq(strings.ReplaceAll(table, "`", ""), "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("docs/operations.md has the row %q", row)
		}
		for verb := range strings.SplitSeq(cells[0], ", ") {
			said.Insert(verb + " " + cells[1])
		}
	}
	granted := sets.New(rightsIn(t, deployFolder)...).Insert(rightsIn(t, namespacedFolder)...)
	for _, right := range sets.List(granted.Difference(said)) {
		t.Errorf("docs/operations.md does not say what a thief can do by the permission to %s", right)
	}
	for _, right := range sets.List(said.Difference(granted)) {
		t.Errorf("docs/operations.md says what a thief can do by the permission to %s, which the manifests do not grant", right)
	}
}

// rightsIn returns what the roles of a directory grant and its flow schemas prefer, in the
// words of the manual.
func rightsIn(t *testing.T, folder string) []string {
	t.Helper()
	objects := objectsOf(t, folder)
	grants, err := grantsOf(objects)
	footest.Must(t, err)
	var rights []string
	for _, grant := range grants {
		right := grant.String()
		if grant.Name != "" {
			right += " named " + grant.Name
		}
		rights = append(rights, right)
	}
	for _, object := range objects {
		if object.GetKind() != flowSchema {
			continue
		}
		var schema flowcontrolv1.FlowSchema
		footest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &schema))
		for _, rule := range schema.Spec.Rules {
			for _, requests := range rule.ResourceRules {
				for _, verb := range requests.Verbs {
					rights = append(rights, verb+" "+strings.Join(requests.Resources, " and ")+" by the FlowSchema")
				}
			}
		}
	}
	return rights
}

// trial is a controller with some permissions, and its namespaces.
type trial struct {
	account *account
	// home is the account's namespace, and foos the one that the controller watches.
	home, foos *namespace
	// readerToken may read the metrics.
	readerToken string
	flags       []string
	// controllers are the running controllers, in the order of their start.
	controllers []*process

	// mu guards the requests of the controllers, and those that the API server refused.
	mu       sync.Mutex
	requests []authorizationv1.ResourceAttributes
	refused  []string
}

// newTrial creates an account with the permissions of the objects. It starts no
// controller.
func newTrial(t *testing.T, objects manifests) *trial {
	t.Helper()
	tr := &trial{home: newNamespace(t), foos: newNamespace(t)}
	tr.account = tr.home.newAccountWith(t, objects, tr.foos.name)
	// Create the reader first, because the controller caches refusals.
	tr.readerToken = tr.home.newReader(t, "reader", metricsReader+tr.home.name, "/metrics")
	tr.account.kubeconfig = behindProxy(t, tr.account, func(*http.Request) {}, tr.note)
	tr.flags = append(tr.account.flags(), "-leader-elect-resource-namespace="+tr.home.name,
		"-v=2", "-namespace="+tr.foos.name, "-leader-elect-lease-duration=30s", "-leader-elect-renew-deadline=25s",
		"-metrics-bind-address="+anyPort)
	return tr
}

// requestInfo reads requests as the API server does.
var requestInfo = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// note notes the permission that a request takes, and a refusal.
func (tr *trial) note(r *http.Response) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if info, err := requestInfo.NewRequestInfo(r.Request); err == nil && info.IsResourceRequest {
		tr.requests = append(tr.requests, authorizationv1.ResourceAttributes{
			Namespace: info.Namespace, Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource, Name: info.Name,
		})
	}
	if r.StatusCode == http.StatusForbidden {
		tr.refused = append(tr.refused, r.Request.Method+" "+r.Request.URL.Path)
	}
	return nil
}

// start starts one more controller.
func (tr *trial) start(t *testing.T, flags ...string) {
	t.Helper()
	tr.controllers = append(tr.controllers, startController(t, append(flags, tr.flags...)...))
}

// takeAllSteps takes the controller through all that it does.
func (tr *trial) takeAllSteps(t *testing.T) {
	t.Helper()
	tr.start(t, "-leader-elect-retry-period=1s")
	leader := tr.controllers[0]
	leader.awaitLog(t, working, 1)
	t.Run("each kind", func(t *testing.T) { // returns when the parallel checks have ended
		for _, kind := range kindsOfChildren() {
			t.Run(kind.Kind, kindIn{tr.foos, kind}.check)
		}
	})
	if got := ask(t, leader.metricsURL(t), tr.readerToken); got.code != http.StatusOK {
		t.Errorf("An authorized reader of the metrics gets %d: %s", got.code, got.body)
	}
	// Without a watch a standby would read the Lease again after 20 s.
	tr.start(t, "-leader-elect-retry-period=20s")
	tr.controllers[1].awaitLog(t, newHolder, 1) // it has read the Lease once
	leader.stop(t)
	tr.controllers[1].awaitLog(t, working, 1)
}
