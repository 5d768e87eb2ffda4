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

package main

import (
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// saying is what a status says of a Foo's readiness, and since when, in whole
// seconds as statuses are stored.
type saying struct {
	uid            types.UID
	status, reason string
	generation     int64
	since          int64
}

func sayingOf(object runtime.Object) (said saying, ok bool) {
	foo, isFoo := object.(*samplev1alpha1.Foo)
	if !isFoo {
		return saying{}, false
	}
	for _, condition := range foo.Status.Conditions {
		if condition.Type == "Ready" {
			return saying{foo.UID, string(condition.Status), condition.Reason, condition.ObservedGeneration, condition.LastTransitionTime.Unix()}, true
		}
	}
	return saying{}, false
}

// noteAnswer remembers what a session said in a status of which it was not told
// whether it is stored.
func (s *session) noteAnswer(sent runtime.Object, err error) {
	said, ok := sayingOf(sent)
	var answer apierrors.APIStatus
	if !ok || err == nil || errors.As(err, &answer) && answer.Status().Code < http.StatusInternalServerError {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered = append(s.unanswered, said)
}

// seesItsOwn reports whether what a session said without an answer is stored,
// whoever has stored it. A second controller may have said the very same within
// the same second: nobody can tell the two apart, and each has its event.
func (s *session) seesItsOwn(uid types.UID, reason string) bool {
	stored := map[saying]bool{}
	changes, _ := s.world.api.next(0)
	for _, change := range changes {
		if said, ok := sayingOf(change.object); ok {
			stored[said] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.unanswered, func(said saying) bool { return said.uid == uid && said.reason == reason && stored[said] })
	if i < 0 {
		return false
	}
	s.unanswered = slices.Delete(s.unanswered, i, i+1)
	s.untold[uid]++
	return true
}
