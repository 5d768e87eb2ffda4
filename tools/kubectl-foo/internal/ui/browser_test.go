// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"example.com/sample-controller/test/footest"
)

var shots = flag.String("shots", "", "Folder for pictures of the page.")

// page is a page in a browser.
type page struct {
	context.Context // chromedp keeps its state in it

	t *testing.T
	// complaints are the errors in the browser's console, such as violations of the
	// page's policy.
	mu         sync.Mutex
	complaints []string
}

// browser returns the path of Chromium, and skips the test if there is none.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no chromium")
	return ""
}

// newPage opens an address in a new browser.
func newPage(t *testing.T, url string, width, height int64) *page {
	t.Helper()
	flags := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(browser(t)), chromedp.NoSandbox, chromedp.Flag("force-device-scale-factor", "1"), chromedp.Flag("font-render-hinting", "none"))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(stop)
	limited, cancel := context.WithTimeout(allocator, 2*time.Minute)
	t.Cleanup(cancel)
	tab, closeTab := chromedp.NewContext(limited)
	t.Cleanup(closeTab)
	p := &page{Context: tab, t: t}
	chromedp.ListenTarget(tab, p.listen)
	p.run(cdplog.Enable(), chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.complaints) > 0 {
			t.Errorf("the browser says\n%s", strings.Join(p.complaints, "\n"))
		}
	})
	return p
}

func (p *page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event := event.(type) {
	case *cdplog.EventEntryAdded:
		p.complaints = append(p.complaints, fmt.Sprintf("%s: %s %s", event.Entry.Level, event.Entry.Text, event.Entry.URL))
	case *cdpruntime.EventExceptionThrown:
		p.complaints = append(p.complaints, event.ExceptionDetails.Error())
	case *cdpruntime.EventConsoleAPICalled:
		p.complaints = append(p.complaints, fmt.Sprintf("%s: %v", event.Type, event.Args))
	}
}

func (p *page) run(actions ...chromedp.Action) {
	p.t.Helper()
	footest.Must(p.t, chromedp.Run(p, actions...))
}

// await waits until an expression is true.
func (p *page) await(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p, 15*time.Second)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(0))); err != nil {
		var text string
		_ = chromedp.Run(p, chromedp.Evaluate("document.activeElement.outerHTML + '\\n' + document.body.innerText", &text))
		p.t.Fatalf("%s: %v\n%s", expression, err, text)
	}
}

// awaitText waits until an element has a text.
func (p *page) awaitText(selector, text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("[...document.querySelectorAll(%q)].some((node) => node.checkVisibility() && node.innerText.includes(%q))", selector, text))
}

// awaitFocus waits until an element has the focus.
func (p *page) awaitFocus(selector string) {
	p.t.Helper()
	p.await(fmt.Sprintf("document.activeElement.matches(%q)", selector))
}

// press presses keys, one after the other.
func (p *page) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.run(chromedp.KeyEvent(key))
	}
}

// prefer sets the reader's preferences.
func (p *page) prefer(scheme string) {
	p.t.Helper()
	p.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}))
}

// shoot takes a picture, for people to look at.
func (p *page) shoot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	var png []byte
	p.run(chromedp.CaptureScreenshot(&png))
	footest.Must(p.t, os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o600))
}
