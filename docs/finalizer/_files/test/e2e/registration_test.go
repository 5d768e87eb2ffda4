// SPDX-License-Identifier: Apache-2.0

// The registrar for the test of permissions.

package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newRegistrar starts a registrar and returns its address. At the end of the test, when
// the controllers have stopped, it releases the Foos, so that their namespace can be deleted.
func newRegistrar(t *testing.T, foos *namespace) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(func() {
		server.Close()
		ctx := context.WithoutCancel(t.Context())
		list, err := foos.foos().List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, foo := range list.Items {
			patch := []byte(`{"metadata":{"finalizers":null}}`)
			if _, err := foos.foos().Patch(ctx, foo.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	return server.URL
}
