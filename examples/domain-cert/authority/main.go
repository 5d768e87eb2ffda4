// Command authority is a certificate authority to try DomainCerts with. It issues a certificate to everyone but the
// domain "theirs.example", and prints each call. While the file authority.down exists, it answers 503.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// authority has the certificates by the UID of the object that they are for.
type authority struct {
	mu     sync.Mutex
	serial int
	issued map[string]certificate
}

type certificate struct {
	Serial   string    `json:"serial"`
	NotAfter time.Time `json:"notAfter"`
	domain   string
}

// ServeHTTP answers PUT /certificates/UID with the certificate that there is, and DELETE by revoking it.
func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	uid, status := r.PathValue("uid"), http.StatusOK
	var asked struct{ Domain string }
	_ = json.NewDecoder(r.Body).Decode(&asked) // a DELETE has no body
	is, isIssued := a.issued[uid]
	_, err := os.Stat("authority.down")
	switch {
	case err == nil:
		status = http.StatusServiceUnavailable
	case r.Method == http.MethodDelete:
		delete(a.issued, uid)
	case asked.Domain == "theirs.example":
		status = http.StatusUnprocessableEntity
	case !isIssued || is.domain != asked.Domain || time.Until(is.NotAfter) < 48*time.Hour:
		a.serial++
		is = certificate{fmt.Sprint(a.serial), time.Now().Add(90 * 24 * time.Hour).Truncate(time.Second), asked.Domain}
		a.issued[uid] = is
	}
	fmt.Println(r.Method, is.domain, is.Serial, status)
	w.WriteHeader(status)
	if status == http.StatusUnprocessableEntity {
		fmt.Fprint(w, "the domain is not yours")
	} else if status == http.StatusOK {
		_ = json.NewEncoder(w).Encode(is)
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("Listening at http://" + listener.Addr().String())
	handler := http.NewServeMux()
	handler.Handle("/certificates/{uid}", &authority{issued: map[string]certificate{}})
	server := http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	fmt.Fprintln(os.Stderr, server.Serve(listener))
}
