// SPDX-License-Identifier: Apache-2.0

// What users and others do, and the control plane.

package explore

import (
	"fmt"
	"slices"
	"strings"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/oracle"
	"example.com/sample-controller/test/simulation/model"
)

// act is a write of a user or of somebody else.
type act struct {
	name string
	// may reports whether the act makes sense in a state, and do carries it out.
	may func(x explored) bool
	do  func(x explored)
}

// newAct makes an act from its text: one that model.Parse reads, "undo web", which is a drift
// while nothing else is under way, or "allow", which lifts what refuses writes.
func (s *scene) newAct(text string) (act, error) {
	if text == "allow" {
		return act{text, func(x explored) bool { return x.refusing != Done }, func(x explored) { x.refusing = Done }}, nil
	}
	object, isUndo := strings.CutPrefix(text, "undo ")
	parsed := text
	if isUndo {
		parsed = "drift " + object
	}
	a, ok := model.Parse(s.Owner, parsed, func(kind *footest.Kind, name string) bool {
		_, known := s.slotNamed(kind.Resource.Resource, name)
		return known
	})
	if !ok {
		return act{}, fmt.Errorf("world %s: the act %q is unknown, or about an object that it has no name for", s.Name, text)
	}
	at, _ := s.slotNamed(a.Kind.Resource.Resource, a.Name)
	return act{
		name: text,
		may: func(x explored) bool {
			r, ok := a.Request(x.stored(at))
			isChange := ok && (a.Verb != "update" || fingerprintOf(r.Sent).content != x.store[at].content)
			return isChange && (!isUndo || x.isQuiet())
		},
		do: func(x explored) {
			r, _ := a.Request(x.stored(at))
			x.mustServe(&request{r, at})
		},
	}, nil
}

// mustServe carries out a write that the API server must accept.
func (x explored) mustServe(sent *request) {
	if _, err := x.serve(sent); err != nil {
		panic(fmt.Sprintf("%s: %v", sent, err))
	}
}

// world returns all that there is.
func (x explored) world() oracle.World {
	w := oracle.World{Owner: x.Owner, Refused: x.refusing != Done}
	for _, object := range x.store {
		if object != nil {
			w.Objects = append(w.Objects, object.Object)
		}
	}
	return w
}

func (x explored) controlPlaneSteps(all []step) []step {
	model.Duties(x.world(), func(duty model.Duty, object footest.Object) {
		if duty == model.Advance && slices.Contains(x.Stuck, object.GetName()) {
			return
		}
		at, _ := x.slotOf(object)
		all = append(all, step{op: opControlPlane, a: uint8(at), b: uint8(duty)})
	})
	return all
}

func (x explored) controlPlane(s step) {
	at, duty := slot(s.a), model.Duty(s.b)
	r := duty.Request(x.store[at].Object)
	for duty == model.Advance && !x.EachWrite && r.Kind.Advance(r.Object()) {
	}
	x.mustServe(&request{r, at})
}
