// SPDX-License-Identifier: Apache-2.0

// Pages as galleries: each owns a set of Deployments, one for each part, and names a Secret.

package reconciletest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/wire"
	"example.com/sample-controller/pkg/reconcile/table"
)

const digestAnnotation = "example.com/secret"

// parts depend on the Secret: their Pods restart when it changes.
var parts = plan.Row[*Page, *appsv1.Deployment]{
	Kind: "Deployment", Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), NamedBy: "spec.name", OneAtATime: true,
	Names: func(page *Page) (names []string) {
		for i := range page.Spec.Parts {
			names = append(names, fmt.Sprintf("%s-%d", page.Spec.Name, i))
		}
		return names
	},
	Init: func(child *appsv1.Deployment, _ *Page) {
		labels := map[string]string{"part": child.Name}
		child.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		child.Spec.Template.Labels = labels
		child.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
	},
	SetOwned: func(child *appsv1.Deployment, page *Page, view *plan.View) {
		child.Spec.MinReadySeconds = int32(len(page.Spec.Text))
		view.AnnotateDigest(&child.Spec.Template.ObjectMeta, digestAnnotation, "Secret")
	},
	Keep: func(kept, found *appsv1.Deployment) { kept.Spec, kept.Status = found.Spec, found.Status },
	Judge: func(child *appsv1.Deployment) plan.Readiness {
		if status := child.Status; status.ObservedGeneration < child.Generation || status.UpdatedReplicas < 1 || status.AvailableReplicas < 1 {
			return plan.NotReady(plan.ReasonProgressing, "%s is not rolled out", child.Name)
		}
		return plan.Ready("%s is available", child.Name)
	},
	Serves: func(child *appsv1.Deployment) bool { return child.Status.AvailableReplicas > 0 },
}

var named = plan.Ref[*Page, *corev1.Secret]{
	Kind: "Secret", Resource: corev1.SchemeGroupVersion.WithResource("secrets"), NamedBy: "spec.name",
	Names:  func(page *Page) []string { return []string{page.Spec.Name} },
	Digest: func(secret *corev1.Secret) any { return secret.Data },
	Judge: func(secret *corev1.Secret) plan.Readiness {
		if len(secret.Data["password"]) == 0 {
			return plan.Stalled("SecretFailed", "Secret %q has no password", secret.Name)
		}
		return plan.Ready("")
	},
}

// declaredGalleries returns the kind for those who do not read or write.
func declaredGalleries() *plan.Kind {
	kind := pages
	kind.Children, kind.References = []*plan.ChildKind{parts.Of(&kind)}, []*plan.ChildKind{named.Of(&kind)}
	return &kind
}

func galleries(client rest.Interface, factory informers.SharedInformerFactory, d defect) ([]table.Row[*Page], []cache.SharedIndexInformer) {
	kube, deployments, row := kubernetes.New(client), factory.Apps().V1().Deployments().Informer(), parts
	secrets := metadatainformer.NewFilteredMetadataInformer(wire.NewMetadataClient(client), named.Resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	row.OneAtATime = !d.allAtOnce
	ref := named
	if d.reveals {
		ref.Judge = func(secret *corev1.Secret) plan.Readiness {
			return plan.Ready("the password is %s", secret.Data["password"])
		}
	}
	return []table.Row[*Page]{
		table.Uses(ref, secrets, kube.CoreV1().Secrets),
		table.Owns(row, deployments, kube.AppsV1().Deployments),
	}, []cache.SharedIndexInformer{deployments, secrets}
}

// read reads the objects that a Page names.
func (l *pageLoop) read(ctx context.Context, row *table.Children, page plan.Owner) (found plan.Found, err error) {
	live := map[string]plan.Object{}
	found.Named = func(key cache.ObjectName) plan.Object { return live[key.Name] }
	for _, name := range row.NamesFor(page) {
		if known := l.known[name]; known != nil && l.readsOnce {
			live[name] = known
			continue
		}
		object, err := row.Get(ctx, cache.ObjectName{Namespace: page.GetNamespace(), Name: name}, metav1.GetOptions{})
		if secret, isSecret := object.(*corev1.Secret); err == nil && isSecret && l.writesNamed {
			_, err = l.update(ctx, secret)
		}
		switch {
		case apierrors.IsNotFound(err):
			l.known[name] = nil
		case err != nil:
			return found, err
		default:
			live[name], l.known[name] = object, object
		}
	}
	return found, nil
}

// knownOf returns what was learned of an object that a Page names, if the cache has no other version.
func (l *pageLoop) knownOf(row *table.Children, key cache.ObjectName) (outcome plan.Outcome, isKnown bool) {
	known, wasRead := l.known[key.Name]
	cached := row.Named(key)
	switch {
	case !wasRead || (known == nil) != (cached == nil), known != nil && known.GetResourceVersion() != cached.GetResourceVersion():
		return outcome, false
	}
	outcome.Seen = new(row.Learn(known))
	return outcome, true
}

// update writes an object that a Page only names.
func (l *pageLoop) update(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	secret.Labels = map[string]string{"used": "yes"}
	return l.kube.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
}

// first returns the deletion of the first child that its owner does not want, instead of the last.
func (l *pageLoop) first(step *plan.Step) *plan.Step {
	controlled := l.kind.ControlledBy(l.kind.Row(step.ChildKind), step.Owner)
	slices.SortFunc(controlled, func(a, b plan.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, child := range controlled {
		if step.MayDelete(child, step.Owner, true) {
			first := *step
			first.Key, first.Found = cache.MetaObjectToName(child), child
			return &first
		}
	}
	return step
}

func controllerOfGalleries(d defect) Controller[*Page] {
	return Controller[*Page]{
		Kind:    declaredGalleries(),
		Example: &Page{Spec: PageSpec{Name: "web", Text: "one", Parts: 2}},
		Edits: []func(*Page){
			func(page *Page) { page.Spec.Parts = 4 },
			func(page *Page) { page.Spec.Name = "api" },
			func(page *Page) { page.Spec.Text = "other" },
		},
		Named: map[string]Named{"Secret": {
			Object: &corev1.Secret{Data: map[string][]byte{"password": []byte("swordfish")}},
			Edits:  []func(plan.Object){func(secret plan.Object) { secret.(*corev1.Secret).Data["password"] = []byte("open sesame") }},
			Spoil:  func(secret plan.Object) { delete(secret.(*corev1.Secret).Data, "password") },
		}},
		Start: startPages(galleries, d), NoEvents: true, Every: 200,
	}
}

func TestGalleries(t *testing.T)       { Test(t, controllerOfGalleries(defect{})) }
func TestGalleriesRandom(t *testing.T) { TestRandom(t, controllerOfGalleries(defect{})) }

// TestOwnersThatWantEachOthersSetsComeToRest: each waits for the other, and says so once.
func TestOwnersThatWantEachOthersSetsComeToRest(t *testing.T) {
	c := controllerOfGalleries(defect{})
	owner, err := derive(c)
	if err != nil {
		t.Fatal(err)
	}
	steps := []step{"create a web 2", "create b api 2", "rename a api", "rename b web"}
	run, _ := workload{name: "some", steps: steps}.runWithoutFaults(t, owner, c.Start)
	if len(run.violations) > 0 {
		t.Errorf("%s", strings.Join(run.violations, "\n"))
	}
}

func TestBrokenControllersOfSetsAndReferencesAreDetected(t *testing.T) {
	for name, row := range map[string]struct {
		defect    defect
		steps     []step
		violation string
	}{
		"deletes the first first":        {defect{firstFirst: true}, []step{"create a web 2", "scale a 1"}, "sent delete of deployments web-2, although web-3 goes first"},
		"creates all at once":            {defect{allAtOnce: true}, []step{"create a web"}, "sent create of deployments web-1, although web-0, as it was seen, is not ready"},
		"ignores what changes":           {defect{readsOnce: true}, []step{"create a web", "amend Secret/web"}, "at rest: Page a has a Deployment that differs"},
		"is ready without what it names": {defect{staysReady: true}, []step{"create a web", "remove Secret/web"}, "want False, SecretMissing"},
		"is ready of the old one":        {defect{staysReady: true}, []step{"create a web", "amend Secret/web"}, "Page team-a/a reports Ready until version"},
		"tells what is in what it names": {defect{reveals: true}, []step{"create a web"}, `which has "swordfish" of Secret `},
		"writes what it names":           {defect{writesNamed: true}, []step{"create a web"}, "sent update of secrets web, which the Page only names"},
	} {
		t.Run(name, func(t *testing.T) {
			c := controllerOfGalleries(row.defect)
			owner, err := derive(c)
			if err != nil {
				t.Fatal(err)
			}
			run, _ := workload{name: "some", steps: row.steps}.runWithoutFaults(t, owner, c.Start)
			if !slices.ContainsFunc(run.violations, func(text string) bool { return strings.Contains(text, row.violation) }) {
				t.Errorf("no violation contains %q:\n%s", row.violation, strings.Join(run.violations, "\n"))
			}
		})
	}
}

func TestWrongNamedObjectsAreRefused(t *testing.T) {
	for says, change := range map[string]func(c *Controller[*Page]){
		"a Page names a Secret: give its Object":   func(c *Controller[*Page]) { c.Named = nil },
		"the object of the kind Secret is not fit": func(c *Controller[*Page]) { c.Named["Secret"].Spoil(c.Named["Secret"].Object) },
		"wants no Deployment":                      func(c *Controller[*Page]) { c.Example.Spec.Parts = 0 },
		"a ConfigMap in Named, but the table of Page has no reference": func(c *Controller[*Page]) {
			c.Named["ConfigMap"] = Named{}
		},
		"edit 1 of the Secret in Named changes nothing that Digest": func(c *Controller[*Page]) {
			c.Named["Secret"].Edits[0] = func(secret plan.Object) { secret.SetLabels(map[string]string{"a": "b"}) }
		},
		"the example has no field spec.secret, which NamedBy says": func(c *Controller[*Page]) {
			c.Kind.References[0].NamedBy = "spec.secret"
		},
		"the Pod template of the Deployment does not change with the Secret": func(c *Controller[*Page]) {
			setOwned, keep := c.Kind.Children[0].SetOwned, c.Kind.Children[0].Keep
			c.Kind.Children[0].SetOwned = func(child plan.Object, owner plan.Owner, view *plan.View) {
				setOwned(child, owner, view)
				delete(child.(*appsv1.Deployment).Spec.Template.Annotations, digestAnnotation)
				view.AnnotateDigest(&child.(*appsv1.Deployment).ObjectMeta, digestAnnotation, "Secret")
			}
			c.Kind.Children[0].Keep = func(kept, found plan.Object) {
				keep(kept, found)
				kept.SetAnnotations(found.GetAnnotations())
			}
		},
		"no child changes with the Secret that a Page names": func(c *Controller[*Page]) {
			c.Kind.Children[0].SetOwned = func(plan.Object, plan.Owner, *plan.View) {}
		},
		`the row Deployment: Keep does not copy all that SetOwned sets, so that each sync would repair it: spec.template.metadata.annotations`: func(c *Controller[*Page]) {
			c.Kind.Children[0].Keep = func(kept, found plan.Object) {
				kept.(*appsv1.Deployment).Spec = *found.(*appsv1.Deployment).Spec.DeepCopy()
				kept.(*appsv1.Deployment).Spec.Template.Annotations = nil
			}
		},
	} {
		c := controllerOfGalleries(defect{})
		change(&c)
		if _, err := derive(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("it says %v, want %q", err, says)
		}
	}
}
