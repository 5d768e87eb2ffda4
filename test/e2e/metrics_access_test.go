// SPDX-License-Identifier: Apache-2.0

// Who may read metrics and profiles.

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
)

func TestMetricsNeedPermission(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	p := ns.startController(t, "-metrics-bind-address="+anyPort)
	url := "https://" + p.servedAt(t, "metrics") + "/metrics"
	reader, stranger := ns.newReader(t), ns.newToken(t, "stranger")

	for _, test := range []struct {
		who, token string
		code       int
		says       string
	}{
		{"no token", "", http.StatusUnauthorized, "bearer token"},
		{"a made-up token", "made-up", http.StatusUnauthorized, "does not accept"},
		{"a service account without permission", stranger, http.StatusForbidden, "system:serviceaccount:" + ns.name + ":stranger"},
		{"a service account with the shipped permission", reader, http.StatusOK, "sample_controller_sync_duration_seconds_bucket"},
	} {
		if got := ask(t, url, test.token); got.code != test.code || !strings.Contains(got.body, test.says) {
			t.Errorf("With %s the response is %d: %.300s, want %d: … %s", test.who, got.code, got.body, test.code, test.says)
		}
	}
	if got, err := askBy(t.Context(), nil, strings.Replace(url, "https", "http", 1), reader); err == nil && got.code != http.StatusBadRequest {
		t.Errorf("Without TLS the response is %d: %.300s", got.code, got.body)
	}
	if _, err := askBy(t.Context(), &tls.Config{}, url, reader); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("A client that verifies the self-signed certificate got %v, want an error", err)
	}
	if got := ask(t, strings.Replace(url, "/metrics", "/debug/pprof/", 1), reader); got.code != http.StatusNotFound {
		t.Errorf("Without -profiling the response for profiles is %d, want 404", got.code)
	}
}

func TestMetricsWithACertificateFromFiles(t *testing.T) {
	t.Parallel()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("metrics.example", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	writeFile(t, folder, "tls.crt", string(certificate))
	writeFile(t, folder, "tls.key", string(key))
	ns := newNamespace(t)
	p := ns.startController(t, "-metrics-bind-address="+anyPort,
		"-tls-cert-file="+filepath.Join(folder, "tls.crt"), "-tls-private-key-file="+filepath.Join(folder, "tls.key"))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	secure := &tls.Config{RootCAs: trusted, ServerName: "metrics.example"}
	got, err := askBy(t.Context(), secure, "https://"+p.servedAt(t, "metrics")+"/metrics", ns.newReader(t))
	if err != nil || got.code != http.StatusOK {
		t.Errorf("A client that trusts the certificate got %d: %v", got.code, err)
	}
}

func TestProfilesNeedPermission(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	p := ns.startController(t, "-metrics-bind-address="+anyPort, "-profiling")
	url := "https://" + p.servedAt(t, "metrics") + "/debug/pprof/heap"
	reader, developer := ns.newReader(t), ns.newToken(t, "developer")
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: ns.name + "-profiles", Labels: map[string]string{runLabel: cluster.run}},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/debug/pprof/*"}, Verbs: []string{"get"}}},
	}
	if _, err := cluster.kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.bind(t, "developer", role.Name, "/debug/pprof/heap")
	for token, want := range map[string]int{"": http.StatusUnauthorized, reader: http.StatusForbidden, developer: http.StatusOK} {
		if got := ask(t, url, token); got.code != want {
			t.Errorf("Got %d: %.300s, want %d", got.code, got.body, want)
		}
	}
}
