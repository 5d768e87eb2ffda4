/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// The objects that the fuzz targets make from their inputs.

package footest

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/randfill/bytesource"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// A fuzz target gets three arguments: a script, noise, and words. The script is a fooCase
// and up to three deploymentCases, as bytes. Each byte chooses from a list in cases.go,
// so that any script is valid, a changed byte changes one thing, and 0 is the plain case:
// the Foo "a" in its desired state. The noise fills fields that belong to others, and the
// words are texts of users and servers. The objects are such as an API server could have
// stored.

// fooCase describes the Foo "a".
type fooCase struct {
	Name, Replicas, Deleting, Status byte
	// Words is the number of repetitions of the words.
	Words byte
	// Live is the change of the Foo that the cache has not seen.
	Live byte
}

// deploymentCase describes a Deployment. It is ignored if its name is taken.
type deploymentCase struct {
	Name, Owner, AdoptBy, Deleting, Selector, Container, Replicas, Rollout byte
	// Unseen chooses whether the cache lacks the Deployment, and Live the change of it
	// that the cache has not seen.
	Unseen, Live byte
}

const maxDeployments = 3

// script encodes the cases as a script.
func script(foo fooCase, deployments ...deploymentCase) []byte {
	text, err := binary.Append(nil, binary.BigEndian, foo)
	for _, deployment := range deployments {
		if err == nil {
			text, err = binary.Append(text, binary.BigEndian, deployment)
		}
	}
	if err != nil {
		panic(err)
	}
	return text
}

// readScript decodes a script. Missing bytes are 0.
func readScript(text []byte) (foo fooCase, deployments []deploymentCase) {
	text = readCase(text, &foo)
	for len(text) > 0 && len(deployments) < maxDeployments {
		var next deploymentCase
		text = readCase(text, &next)
		deployments = append(deployments, next)
	}
	return foo, deployments
}

func readCase(text []byte, into any) (rest []byte) {
	whole := make([]byte, binary.Size(into))
	read := copy(whole, text)
	if _, err := binary.Decode(whole, binary.BigEndian, into); err != nil {
		panic(err)
	}
	return text[read:]
}

// FuzzWorld holds the Foo "a" and the Deployments in its namespace, as in the caches but
// before the transformer.
type FuzzWorld struct {
	Foo         *samplev1alpha1.Foo
	Deployments []*appsv1.Deployment
	Words       string

	fooCase         fooCase
	deploymentCases []deploymentCase
}

// NewFuzzWorld makes a FuzzWorld from the arguments of a fuzz target.
func NewFuzzWorld(t *testing.T, text, noise []byte, words string) *FuzzWorld {
	t.Helper()
	how, others := readScript(text)
	w := &FuzzWorld{fooCase: how, Words: repeated(words, pick(how.Words, repeats))}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the world was %+v and %+v", w.fooCase, w.deploymentCases)
		}
	})
	w.Foo = Foo("a", WithDeploymentName(pick(how.Name, wantedNames)), pick(how.Replicas, wantedSizes), WithStatus(pick(how.Status, fooStatuses)()))
	if pick(how.Deleting, deletings) {
		BeingDeleted(w.Foo)
	}
	fill := newFiller(noise)
	for _, other := range others {
		if name := pick(other.Name, deploymentNames); w.Find(name) == nil {
			w.deploymentCases = append(w.deploymentCases, other)
			w.Deployments = append(w.Deployments, newFuzzDeployment(name, other, fill, w.Words))
		}
	}
	return w
}

// repeated repeats words, as far as an API server could store the text.
func repeated(words string, times int) string {
	const limit = 40_000 // more characters than a condition's message may have
	valid := strings.ToValidUTF8(words, "?")
	return strings.Repeat(valid, min(times, 1+limit/max(1, utf8.RuneCountInString(valid))))
}

// Find returns the Deployment of a name, or nil.
func (w *FuzzWorld) Find(name string) *appsv1.Deployment {
	for _, deployment := range w.Deployments {
		if deployment.Name == name {
			return deployment
		}
	}
	return nil
}

func newFuzzDeployment(name string, how deploymentCase, fill *randfill.Filler, words string) *appsv1.Deployment {
	object := Deployment("a", Named(name), AtVersion("20"))
	object.UID = types.UID("uid-" + name)
	object.Generation = 1
	object.CreationTimestamp = metav1.NewTime(Earlier.Add(-time.Hour))
	object.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}}
	object.OwnerReferences = pick(how.Owner, owners)
	if int(how.Owner)%len(owners) == ownerAnotherKind {
		object.OwnerReferences = []metav1.OwnerReference{ownerRef("samplecontroller.k8s.io/v1alpha1", "Bar", ownerName(words), "uid-a", true)}
	}
	object.Spec.Replicas = pick(how.Replicas, sizes)
	selector := pick(how.Selector, selectors)
	object.Spec.Selector = &selector
	object.Spec.Template.Labels = pick(how.Selector, templateLabels)
	object.Spec.Template.Spec.Containers = pick(how.Container, containers)
	pick(how.Rollout, rollouts)(&object.Status, words)
	if pick(how.Deleting, deletings) {
		Terminating(object)
	}
	addNoise(object, fill)
	if by := pick(how.AdoptBy, adoptions); by != "" {
		WithAdoptBy(by)(object)
	}
	// Do not change the objects of the lists.
	return object.DeepCopy()
}

// ownerName makes an owner's name of words. It may be anything but empty.
func ownerName(words string) string {
	if words == "" {
		return "bar"
	}
	return words
}

// newFiller returns a filler that takes its values from noise, or nil if there is no
// noise.
func newFiller(noise []byte) *randfill.Filler {
	if len(noise) == 0 {
		return nil
	}
	return randfill.New().NilChance(.5).NumElements(0, 2).RandSource(bytesource.New(noise)).
		Funcs(func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		})
}

// addNoise fills the fields of a Deployment that belong to others.
func addNoise(object *appsv1.Deployment, fill *randfill.Filler) {
	if fill == nil {
		return
	}
	fill.Fill(&object.Labels)
	fill.Fill(&object.Annotations)
	delete(object.Annotations, samplev1alpha1.AnnotationAdoptBy)
	fill.Fill(&object.Spec.Strategy)
	fill.Fill(&object.Spec.MinReadySeconds)
	fill.Fill(&object.Spec.Paused)
	fill.Fill(&object.Spec.Template.Annotations)
	var pod corev1.PodSpec
	fill.Fill(&pod)
	pod.Containers = slices.Concat(object.Spec.Template.Spec.Containers, pod.Containers)
	object.Spec.Template.Spec = pod
}

// Live returns the objects as the API server has them.
func (w *FuzzWorld) Live() *FuzzWorld {
	live := &FuzzWorld{Foo: pick(w.fooCase.Live, fooNews)(w.Foo.DeepCopy())}
	for i, deployment := range w.Deployments {
		if now := pick(w.deploymentCases[i].Live, deploymentNews)(deployment.DeepCopy()); now != nil {
			live.Deployments = append(live.Deployments, now)
		}
	}
	return live
}

// Seen returns the Deployments in the cache.
func (w *FuzzWorld) Seen() []*appsv1.Deployment {
	var seen []*appsv1.Deployment
	for i, deployment := range w.Deployments {
		if w.deploymentCases[i].Unseen%2 == 0 {
			seen = append(seen, deployment)
		}
	}
	return seen
}

// Stale reports whether the caches are stale.
func (w *FuzzWorld) Stale() bool {
	stale := int(w.fooCase.Live)%len(fooNews) != 0
	for _, how := range w.deploymentCases {
		stale = stale || how.Unseen%2 != 0 || int(how.Live)%len(deploymentNews) != 0
	}
	return stale
}

// Refused reports whether the API server refuses any Deployment that the Foo asks for.
func (w *FuzzWorld) Refused() bool {
	return w.Foo.Spec.DeploymentName == "" || w.Foo.Spec.Replicas != nil && *w.Foo.Spec.Replicas < 0
}

// Named returns the Deployment that the Foo asks for, or nil.
func (w *FuzzWorld) Named() *appsv1.Deployment { return w.Find(w.Foo.Spec.DeploymentName) }
