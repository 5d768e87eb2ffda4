// SPDX-License-Identifier: Apache-2.0

// Who may ask.

package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
)

// policy lets the page load only what this server has, and run only its script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// imagePolicy is that of pictures, which have a style sheet inside.
const imagePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

// newToken returns a random token of 256 bits.
func newToken() string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	return hex.EncodeToString(random)
}

// guard lets requests pass to next that know the token, and that no page of another origin
// makes. Other programs of this machine can reach the port, and so can pages in the user's
// browser, also with a name that leads to 127.0.0.1 (DNS rebinding).
func guard(token, address string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(address)
	hosts := []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("localhost", port)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("Cache-Control", "no-store")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		origin, site := r.Header.Values("Origin"), r.Header.Values("Sec-Fetch-Site")
		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, "open the address that the command printed", http.StatusMisdirectedRequest)
		case slices.ContainsFunc(origin, func(o string) bool { return o != "http://"+r.Host }),
			slices.ContainsFunc(site, func(s string) bool { return s != "same-origin" && s != "none" }):
			http.Error(w, "no other page may read this", http.StatusForbidden)
		case r.Method != http.MethodGet:
			header.Set("Allow", http.MethodGet)
			http.Error(w, "this page only reads", http.StatusMethodNotAllowed)
		case subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(token)) != 1:
			http.Error(w, "the token is missing or wrong: open the address that the command printed", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
