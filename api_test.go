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
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestMissingDefinitionAndMissingRightAreWaitedFor(t *testing.T) {
	for name, answer := range map[string]error{
		"no CustomResourceDefinition": apierrors.NewNotFound(foosResource.GroupResource(), ""),
		"no right":                    apierrors.NewForbidden(foosResource.GroupResource(), "", errors.New("RBAC")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				installed := f.refuseUntilToldOtherwise("list", "foos", answer)
				done := make(chan error, 1)
				go func() { done <- waitForFoos(f.ctx, f.fooClient, namespace, time.Second) }()
				advance(time.Hour)
				select {
				case err := <-done:
					t.Fatalf("did not wait, but returned %v", err)
				default:
				}
				installed()
				must(t, <-done)
			})
		})
	}
}

func TestServerThatCannotBeUsedIsAnErrorAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		answer error
		want   string
	}{
		"unreachable":     {errors.New("dial tcp: connection refused"), "check that it runs"},
		"bad credentials": {apierrors.NewUnauthorized("no"), "does not accept the credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.refuse("list", "foos", row.answer)
				err := waitForFoos(f.ctx, f.fooClient, namespace, time.Second)
				if !errors.Is(err, row.answer) {
					t.Fatalf("returned %v", err)
				}
				said := explainUnreachable(err, "https://cluster").Error()
				if !strings.Contains(said, row.want) || !strings.Contains(said, "https://cluster") {
					t.Errorf("the message %q does not say %q and the server", said, row.want)
				}
			})
		})
	}
}

func TestStopWhileWaitingIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.refuse("list", "foos", apierrors.NewNotFound(foosResource.GroupResource(), ""))
		ctx, stop := context.WithCancel(f.ctx)
		time.AfterFunc(time.Minute, stop)
		must(t, waitForFoos(ctx, f.fooClient, namespace, time.Second))
	})
}
