// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page of kubectl foo ui, which shows Foos live: why each is in its
// current state, what the controller would write, and who wrote what. Like the other commands,
// it uses the packages explain and report, and writes nothing.
//
// view.go reads what the page shows, server.go rejects requests without the token, and the directory
// page contains the page's template. Its script asks for a fresh copy every two seconds.
package ui

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
)

//go:embed page
var files embed.FS

var index = template.Must(template.New("index.html").Funcs(template.FuncMap{
	"ready": report.Ready, "hasPrefix": strings.HasPrefix, "lines": func(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") },
}).ParseFS(files, "page/index.html"))

// Serve serves the page on a port of 127.0.0.1 until ctx is done. Once there is something to show,
// it prints the address to open. Anyone who knows the address can read the page.
func Serve(ctx context.Context, o Options, port uint16, out io.Writer) error {
	page := &page{Options: o, audit: audit.Log{Path: o.Audit}, log: timeline.Log{You: o.You}}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer listener.Close()
	first, err := page.view(ctx, cache.ObjectName{})
	switch {
	case ctx.Err() != nil:
		return nil // Ctrl-C
	case err != nil:
		return err
	case first.Problem != "":
		return errors.New(first.Problem)
	}
	address, token := listener.Addr().String(), rand.Text()
	fmt.Fprintf(out, "http://%s/?token=%s\n", address, token)
	server := &http.Server{
		Handler:           guard(token, address, handler(page, token)),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler answers all requests. The page without a Foo redirects to the first that is not ready.
func handler(page *page, token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		selected := nameOf(r)
		view, err := page.view(r.Context(), selected)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusBadGateway)
			_ = index.ExecuteTemplate(w, "problem", "out of date: "+err.Error())
		case selected.Name == "" && len(view.Items) > 0:
			first := view.Items[max(0, slices.IndexFunc(view.Items, func(i *item) bool { return i.Condition.Status != metav1.ConditionTrue }))]
			query := url.Values{"token": {token}, "namespace": {first.Namespace}, "name": {first.Name}}
			http.Redirect(w, r, "/?"+query.Encode(), http.StatusFound)
		default:
			view.Token = token
			_ = index.Execute(w, view)
		}
	})
	for _, path := range []string{"/style.css", "/icon.svg", "/follow.js"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "page"+path) })
	}
	mux.HandleFunc("/timeline.svg", func(w http.ResponseWriter, r *http.Request) {
		var svg bytes.Buffer
		if err := page.draw(&svg, nameOf(r), (*timeline.Timeline).WriteSVG); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "image/svg+xml")
		w.Header().Set("Content-Security-Policy", imagePolicy)
		_, _ = w.Write(svg.Bytes())
	})
	return mux
}

// nameOf returns the Foo that a request is about; its name is "" for none.
func nameOf(r *http.Request) cache.ObjectName {
	query := r.URL.Query()
	return cache.ObjectName{Namespace: query.Get("namespace"), Name: query.Get("name")}
}

// policy lets the page load only from this server, and run only its scripts.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// imagePolicy is the policy for pictures, which contain a style sheet.
const imagePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

// guard passes on requests that have the token and do not come from a page of another origin.
// Other programs on this machine can reach the port, and so can pages in the user's browser,
// even under a name that resolves to 127.0.0.1 (DNS rebinding).
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
			http.Error(w, "pages of other origins may not read this", http.StatusForbidden)
		case r.Method != http.MethodGet:
			header.Set("Allow", http.MethodGet)
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
		case subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(token)) != 1:
			http.Error(w, "the token is missing or wrong: open the address that the command printed", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
