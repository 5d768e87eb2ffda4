// SPDX-License-Identifier: Apache-2.0

// References: objects that an owner names and does not own, such as a Secret. They are read, and never
// written.

package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"
)

// DefaultPoll is how long the last read of a reference counts that has no informer.
const DefaultPoll = time.Minute

// Ref declares a kind of object that owners of the type F name and do not own, in their own namespace. Its
// functions are pure. An object that is missing or unfit is reported, and keeps nothing else from being
// synced, unless Blocks is true.
type Ref[F, T Object] struct {
	// Kind is the name of the kind in messages and in View.Digest, such as "Secret".
	Kind string
	// Resource is the kind's resource in the API.
	Resource schema.GroupVersionResource
	// NamedBy is the field of the owner that names the object, or "".
	NamedBy string
	// Names returns the names of the objects, each once. "" names none.
	Names func(owner F) []string
	// Namespace returns the namespace of the objects, if the owners have none of their own.
	Namespace func(owner F) string
	// Digest returns what the children depend on, as a value for JSON. Only its hash is kept. nil means
	// that they depend on nothing but the names.
	Digest func(object T) any
	// Judge returns whether an object is fit. nil means that it is.
	Judge func(object T) Readiness
	// Condition is the type of a condition that the owner has while it names an object, or "".
	Condition string
	// Blocks is true if the children have to wait until the objects are there and fit.
	Blocks bool
	// Poll is how long a read counts if the kind has no informer. 0 means DefaultPoll.
	Poll time.Duration
}

// Seen is what was learned from reading a reference.
type Seen struct {
	// Digest is a hash of what the children depend on, or "" if the object is missing.
	Digest string
	// IsMissing is true if there is no object with the name.
	IsMissing bool
	// Readiness is whether the object is fit. Of a missing one it is zero, or says why it cannot exist.
	Readiness Readiness
}

// Of returns the reference without its types, as one of an owner's kind.
func (r Ref[F, T]) Of(owner *Kind) *ChildKind {
	row := Row[F, T]{
		Kind: r.Kind, Resource: r.Resource, NamedBy: r.NamedBy, Namespace: r.Namespace, Condition: r.Condition, Blocks: r.Blocks,
		SetOwned: func(T, F, *View) {}, Keep: func(T, T) {},
	}
	if r.Names != nil {
		row.Names = func(owner F) []string {
			return slices.DeleteFunc(slices.Clone(r.Names(owner)), func(name string) bool { return name == "" })
		}
	}
	c := row.Of(owner)
	c.poll, c.hasDigest = cmp.Or(r.Poll, DefaultPoll), r.Digest != nil
	c.learn = func(object Object) Seen {
		seen := Seen{Readiness: Readiness{Status: metav1.ConditionTrue}}
		if r.Judge != nil {
			seen.Readiness = r.Judge(object.(T))
		}
		var depends any
		if r.Digest != nil {
			depends = r.Digest(object.(T))
		}
		seen.Digest = digestOf(depends)
		return seen
	}
	return c
}

// digestOf returns a hash of a value.
func digestOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Append(nil, value) // a value that is no JSON has a digest all the same
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:8])
}

// IsReference reports whether owners name the kind's objects and do not own them.
func (c *ChildKind) IsReference() bool { return c.learn != nil }

// HasDigest reports whether children may depend on what is in a reference.
func (c *ChildKind) HasDigest() bool { return c.hasDigest }

// Poll returns how long a read of a reference counts if its kind has no informer.
func (c *ChildKind) Poll() time.Duration { return c.poll }

// Learn returns what is learned from a live object of a reference, or from its absence if it is nil.
func (c *ChildKind) Learn(live Object) Seen {
	if live == nil || reflect.ValueOf(live).IsNil() {
		return Seen{IsMissing: true}
	}
	return c.learn(live)
}

// decideReference decides which of the objects that an owner names have to be read.
func (w *World) decideReference(kind *ChildKind) {
	found := w.read(kind)
	for _, name := range kind.NamesFor(w.Owner) {
		key := kind.KeyFor(w.Owner, name)
		step := &Step{ChildKind: kind, Owner: w.Owner, View: w.view, Part: kind.part(name), Action: ActionNone, Key: key}
		if flaw := kind.cannotExist(key); flaw != "" {
			step.Known.Seen = &Seen{IsMissing: true, Readiness: kind.impossible(name, flaw)}
		} else if found.Known == nil {
			step.Known.Seen = new(kind.Learn(found.Named(key)))
		} else if known, isKnown := found.Known(key); isKnown {
			step.Known = known
		} else {
			step.Action = ActionRead
		}
		if IsTerminating(w.Owner) {
			step.Action = ActionWait
		}
		w.steps, w.outcomes = append(w.steps, step), append(w.outcomes, step.AsFound())
	}
}

// cannotExist returns why no object of the kind can have a key, or "": a read of it would fail as
// if the API server were away. Only roles may have names with other characters than those of a DNS
// subdomain.
func (c *ChildKind) cannotExist(key cache.ObjectName) string {
	flaws := content.IsPathSegmentName(key.Name)
	if len(flaws) == 0 && c.Resource.Group != rbacv1.GroupName {
		flaws = validation.IsDNS1123Subdomain(key.Name)
	}
	if len(flaws) == 0 && key.Namespace != "" {
		flaws = validation.IsDNS1123Label(key.Namespace)
	}
	return strings.Join(flaws, ", and ")
}

func (c *ChildKind) impossible(name, flaw string) Readiness {
	remedy := ""
	if c.NamedBy != "" {
		remedy = ": change " + c.NamedBy
	}
	return Stalled(c.Kind+SuffixMissing, "%s %q cannot exist%s: %s", c.Kind, Truncate(name, maxQuotedName), remedy, flaw)
}

// seeReferences shows what is known of a kind of references to the rows, and reports whether all are there
// and fit.
func (w *World) seeReferences(kind *ChildKind, first int) bool {
	var digests []string
	fit := true
	for i := first; i < len(w.steps); i++ {
		seen := w.outcomes[i].Seen
		if seen == nil || seen.IsMissing || w.outcomes[i].Err != nil {
			w.view.setDigest(kind.Kind, "")
			return false
		}
		fit = fit && seen.Readiness.Status == metav1.ConditionTrue
		digests = append(digests, w.steps[i].Key.Name, seen.Digest)
	}
	switch len(digests) {
	case 0:
	case 2:
		w.view.setDigest(kind.Kind, digests[1])
	default:
		w.view.setDigest(kind.Kind, digestOf(digests))
	}
	return fit
}

// judgeReference reports whether an object that the owner names is there and fit.
func (s *Step) judgeReference(outcome *Outcome) Readiness {
	name := Truncate(s.Key.Name, maxQuotedName)
	remedy := ""
	if s.NamedBy != "" {
		remedy = ", or change " + s.NamedBy
	}
	switch seen := outcome.Seen; {
	case seen == nil:
		return NotReady(ReasonProgressing, "%s %q has yet to be read", s.Kind, name)
	case seen.IsMissing && seen.Readiness.Status == "":
		in := ""
		if s.Key.Namespace != "" {
			in = " in the namespace " + s.Key.Namespace
		}
		return Stalled(s.Kind+SuffixMissing, "%s %q does not exist%s: create it%s", s.Kind, name, in, remedy)
	default:
		return seen.Readiness
	}
}

// Follows returns the digests of the objects that the owner names if an update is due only because of them: without what
// is known of those, nothing has drifted. Otherwise it returns "".
func (s *Step) Follows() string {
	if s.Action != ActionUpdate || len(s.OwnerKind.References) == 0 || s.DescribeDrift(s.Found, s.Owner, s.View.withoutDigests()) != "" {
		return ""
	}
	return fmt.Sprint(s.View.digests)
}
