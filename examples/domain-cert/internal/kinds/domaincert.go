// The kind DomainCert: a certificate of an authority outside the cluster.

package kinds

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	api "example.com/acme/pkg/apis/acme/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

// declareDomainCert puts the kind and its row beside the informer and the client. The environment says where
// the authority is: whoever may create a DomainCert must not choose whom the controller calls.
func declareDomainCert(clients Clients, _ Options) *table.Kind {
	return table.Of(
		plan.Kind{Name: "DomainCert", Resource: api.SchemeGroupVersion.WithResource("domaincerts"), Finalizer: "acme.dev/certificate"},
		clients.CustomInformers.Acme().V1alpha1().DomainCerts().Informer(), clients.Custom.AcmeV1alpha1().DomainCerts,
		table.Calls(certificateOf(authority(os.Getenv("AUTHORITY")))),
	)
}

// certificateOf declares the certificate. Its authority is asked every ten minutes, and when it is due.
func certificateOf(from authority) plan.Call[*api.DomainCert, api.Certificate] {
	return plan.Call[*api.DomainCert, api.Certificate]{
		Kind: "Certificate", Condition: "Issued",
		Do: from.issue, Undo: from.revoke, Poll: 10 * time.Minute, Timeout: 10 * time.Second,
		// Whether the answer is what the DomainCert asks for, and until when.
		Judge: func(is api.Certificate) plan.Readiness {
			if is.Refusal != "" {
				return plan.Stalled("CertificateFailed", "The authority refuses: %s", plan.Truncate(is.Refusal, plan.MaxQuote))
			}
			return plan.Ready("Certificate %s is valid until %s", is.Serial, is.NotAfter.UTC().Format(time.RFC3339)).
				ComeAgain(is.NotAfter.Add(-24 * time.Hour)).Expires(is.NotAfter.Time)
		},
		// What the status says, and the reverse: after a restart, the answer in the status stands.
		Report: func(owner *api.DomainCert, is api.Certificate) { owner.Status.Certificate = is },
		Recall: func(owner *api.DomainCert) api.Certificate { return owner.Status.Certificate },
	}
}

// authority is the address of a service that has a certificate at /certificates/UID for each DomainCert.
type authority string

// issue asks for a certificate, or for the one that there is. A refusal is an answer, because it lasts until someone
// changes the domain; all other errors are tried again.
func (a authority) issue(ctx context.Context, owner *api.DomainCert) (is api.Certificate, err error) {
	body, err := json.Marshal(map[string]string{"domain": owner.Spec.Domain})
	if err != nil {
		return is, err
	}
	status, answer, err := a.call(ctx, http.MethodPut, owner, body)
	switch {
	case err != nil:
		return is, err
	case status == http.StatusUnprocessableEntity:
		return api.Certificate{Refusal: string(answer)}, nil
	case status != http.StatusOK:
		return is, fmt.Errorf("the authority answers with %d", status)
	}
	return is, json.Unmarshal(answer, &is)
}

// revoke ends what issue has begun. It is no error if there is nothing.
func (a authority) revoke(ctx context.Context, owner *api.DomainCert) error {
	status, _, err := a.call(ctx, http.MethodDelete, owner, nil)
	if err == nil && status != http.StatusOK && status != http.StatusNotFound {
		err = fmt.Errorf("the authority answers with %d", status)
	}
	return err
}

// call identifies the certificate by the UID, so that the next DomainCert of the name gets another.
func (a authority) call(ctx context.Context, method string, owner *api.DomainCert, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("%s/certificates/%s", a, owner.UID), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, 64<<10))
	return response.StatusCode, answer, err
}
