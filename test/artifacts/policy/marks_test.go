// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/sample-controller/test/footest"
)

const (
	ownerLabel = "acme.dev/owner-uid"
	ownerKey   = "acme.dev/owner"
)

// marked returns a ConfigMap with marks, "" for none.
func marked(uid, key string) *corev1.ConfigMap {
	of := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", ResourceVersion: "1"}}
	if uid != "" {
		of.Labels = map[string]string{ownerLabel: uid}
	}
	if key != "" {
		of.Annotations = map[string]string{ownerKey: key, "other": uid + key}
	}
	return of
}

// The policy for marks is for a project with them: see docs/grow.md.
func TestOnlyTheControllerSetsMarks(t *testing.T) {
	policy, err := os.ReadFile("../../../docs/grow/marks-policy.yaml")
	footest.Must(t, err)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "acme"}}
	s := newServerWith(t, "", append(decode(policy), account))
	controller, none := s.account, marked("", "")
	for name, test := range map[string]struct {
		stored, sent *corev1.ConfigMap // nothing is stored if it is created
		isRefused    bool
	}{
		"created with both":           {nil, marked("x", "a/b"), true},
		"created with the label":      {nil, marked("x", ""), true},
		"created with the annotation": {nil, marked("", "a/b"), true},
		"created without":             {nil, none, false},
		"both set":                    {none, marked("x", "a/b"), true},
		"the label set":               {marked("", "a/b"), marked("x", "a/b"), true},
		"the label changed":           {marked("x", "a/b"), marked("y", "a/b"), true},
		"the annotation changed":      {marked("x", "a/b"), marked("x", "a/c"), true},
		"an empty label":              {none, func() *corev1.ConfigMap { e := marked("x", ""); e.Labels[ownerLabel] = ""; return e }(), true},
		"another field changed":       {marked("x", "a/b"), func() *corev1.ConfigMap { e := marked("x", "a/b"); e.Data = map[string]string{"a": "b"}; return e }(), false},
		"the label removed":           {marked("x", "a/b"), marked("", "a/b"), false},
		"both removed":                {marked("x", "a/b"), none, false},
		"without marks":               {none, none, false},
	} {
		judge := func(by user.Info) error {
			s.account = by
			if test.stored == nil {
				return s.create(t, test.sent)
			}
			return s.update(t, test.stored, test.sent)
		}
		if err := judge(controller); err != nil {
			t.Errorf("%s, by the controller: %v", name, err)
		}
		for _, other := range []string{"someone", "system:serviceaccount:acme:other", "system:serviceaccount:other:acme"} {
			if err := judge(&user.DefaultInfo{Name: other}); (err != nil) != test.isRefused || err != nil && !strings.Contains(err.Error(), "only the controller may set") {
				t.Errorf("%s, by %s: %v", name, other, err)
			}
		}
	}
}
