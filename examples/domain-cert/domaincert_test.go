// What a DomainCert does, with fake clientsets and an authority that answers over HTTP.

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"example.com/acme/internal/kinds"
	api "example.com/acme/pkg/apis/acme/v1alpha1"
	customfake "example.com/acme/pkg/generated/clientset/versioned/fake"
	informers "example.com/acme/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/table"
)

// domainCerts is a running controller of the DomainCert "cert" in the namespace "team".
type domainCerts struct {
	t      *testing.T
	custom *customfake.Clientset
	// status is the code with which the authority answers, and revoked counts the certificates that it has
	// revoked.
	status, revoked atomic.Int32
}

func runDomainCerts(t *testing.T, cert *api.DomainCert) *domainCerts {
	t.Helper()
	d := &domainCerts{t: t, custom: customfake.NewClientset(cert)}
	d.status.Store(http.StatusOK)
	authority := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := int(d.status.Load())
		w.WriteHeader(status)
		switch {
		case r.Method == http.MethodDelete && status == http.StatusOK:
			d.revoked.Add(1)
		case status == http.StatusOK:
			_, _ = fmt.Fprintf(w, `{"serial": "1", "notAfter": %q}`, time.Now().Add(90*24*time.Hour).UTC().Format(time.RFC3339))
		default:
			_, _ = fmt.Fprint(w, "the domain is not yours")
		}
	}))
	t.Cleanup(authority.Close)
	t.Setenv("AUTHORITY", authority.URL)
	kube := kubefake.NewClientset()
	clients := kinds.Clients{
		Kube: kube, Custom: d.custom, KubeInformers: kubeinformers.NewSharedInformerFactory(kube, 0), CustomInformers: informers.NewSharedInformerFactory(d.custom, 0),
		MetadataInformers: metadatainformer.NewSharedInformerFactory(nil, 0),
	}
	all := kinds.All(clients, kinds.Options{Image: "nginx:1.29"})
	if err := table.Prepare(all...); err != nil {
		t.Fatal(err)
	}
	kind := all[slices.IndexFunc(all, func(kind *table.Kind) bool { return kind.Name == "DomainCert" })]
	controller := NewController(Config{
		Name: "domaincerts", Recorder: record.NewFakeRecorder(100), Clock: clock.RealClock{}, CallTimeout: time.Minute, Metrics: metrics.New("domaincerts", "DomainCert"),
	}, kind)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	clients.CustomInformers.StartWithContext(ctx)
	go func() { ended <- controller.Run(ctx, ctx, 2) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return d
}

// waitFor waits until the condition Ready has a reason, and returns the DomainCert.
func (d *domainCerts) waitFor(reason string) (cert *api.DomainCert) {
	d.t.Helper()
	err := wait.PollUntilContextTimeout(d.t.Context(), 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		cert, err = d.custom.AcmeV1alpha1().DomainCerts("team").Get(ctx, "cert", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		ready := meta.FindStatusCondition(cert.Status.Conditions, "Ready")
		return ready != nil && ready.Reason == reason && ready.ObservedGeneration == cert.Generation, nil
	})
	if err != nil {
		d.t.Fatalf("waiting for %s: %v: %+v", reason, err, cert)
	}
	return cert
}

func (d *domainCerts) update(cert *api.DomainCert, change func()) {
	d.t.Helper()
	change()
	cert.Generation++
	if _, err := d.custom.AcmeV1alpha1().DomainCerts("team").Update(d.t.Context(), cert, metav1.UpdateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

func TestACertificateIsIssuedAndRevoked(t *testing.T) {
	d := runDomainCerts(t, &api.DomainCert{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cert", UID: "1", Generation: 1},
		Spec:       api.DomainCertSpec{Domain: "example.com"},
	})
	cert := d.waitFor("Available")
	if cert.Status.Certificate.Serial != "1" || !slices.Equal(cert.Finalizers, []string{"acme.dev/certificate"}) {
		t.Errorf("the DomainCert is %+v", cert)
	}
	d.status.Store(http.StatusUnprocessableEntity)
	d.update(cert, func() { cert.Spec.Domain = "example.org" })
	cert = d.waitFor("CertificateFailed")
	if cert.Status.Certificate.Refusal != "the domain is not yours" || !meta.IsStatusConditionTrue(cert.Status.Conditions, "Stalled") {
		t.Errorf("the status is %+v", cert.Status)
	}
	d.status.Store(http.StatusServiceUnavailable)
	d.update(cert, func() { cert.DeletionTimestamp = new(metav1.Now()) })
	cert = d.waitFor("Terminating")
	d.status.Store(http.StatusOK)
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		cert, err := d.custom.AcmeV1alpha1().DomainCerts("team").Get(ctx, "cert", metav1.GetOptions{})
		return err != nil || len(cert.Finalizers) == 0, nil
	})
	if err != nil || d.revoked.Load() != 1 {
		t.Errorf("%d certificates are revoked: %v", d.revoked.Load(), err)
	}
}
