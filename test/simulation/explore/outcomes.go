// SPDX-License-Identifier: Apache-2.0

// How calls end.

package explore

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var errNoAnswer = fmt.Errorf("the connection was lost: %w", context.DeadlineExceeded)

// answer carries out a call, unless its outcome prevents that, and returns its answer.
func (x explored) answer(sent *request, outcome Outcome) (runtime.Object, error) {
	resource, name := x.kindOf(sent.slot).Resource.GroupResource(), x.names[sent.slot].name
	internal := apierrors.NewInternalError(errors.New("etcd has no leader"))
	switch outcome {
	case Conflict:
		return nil, apierrors.NewConflict(resource, name, errors.New("the object has been modified"))
	case Lost:
		_, _ = x.carryOut(sent)
		return nil, errNoAnswer
	case Late:
		if sent.verb != "get" {
			x.late = sent
		}
		return nil, errNoAnswer
	case Refused:
		return nil, x.refusal(sent, Refused)
	case RefusedFromNow, Denied409, Denied404, Denied418:
		x.refusing = outcome
	case ServerError:
		return nil, internal
	case ServerErrorDone:
		_, _ = x.carryOut(sent)
		return nil, internal
	case Mutated:
		return x.carryOut(x.mutated(sent))
	default:
	}
	if x.refuses(sent) {
		return nil, x.refusal(sent, x.refusing)
	}
	returned, err := x.carryOut(sent)
	if err == nil && sent.verb == "update" && sent.isOfChild(x) {
		x.countRepair(sent.slot)
	}
	return returned, err
}

// refuses reports whether a call is refused now.
func (x explored) refuses(sent *request) bool {
	return x.refusing != Done && sent.verb != "get" && sent.isOfChild(x)
}

// codes are those of denials.
var codes = map[Outcome]int32{Denied409: http.StatusConflict, Denied404: http.StatusNotFound, Denied418: http.StatusTeapot}

// refusal returns the answer to a write that is refused.
func (x explored) refusal(sent *request, how Outcome) error {
	if code := codes[how]; code != 0 {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: code,
			Message: fmt.Sprintf(`admission webhook "names.example.com" denied the request: %d`, code),
		}}
	}
	return apierrors.NewForbidden(x.kindOf(sent.slot).Resource.GroupResource(), x.names[sent.slot].name, errors.New("a policy is against it"))
}

// mutated returns the creation of a child with other values in the fields that its owner
// owns.
func (x explored) mutated(sent *request) *request {
	changed := copyOf(sent.sent)
	x.kindOf(sent.slot).Drift(changed, nil)
	return &request{verb: sent.verb, slot: sent.slot, sent: changed}
}
