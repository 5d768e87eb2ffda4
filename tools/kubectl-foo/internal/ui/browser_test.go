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
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// picture is the picture in the documents. To draw it again, where Chromium is installed:
// go test -run='^TestThePicture$' ./internal/ui -update.
const picture = "../../../../docs/kubectl-foo-ui.png"

var update = flag.Bool("update", false, "Draw the picture in the documents again.")

// page is a page in a browser.
type page struct {
	context.Context // chromedp keeps its state in it

	t *testing.T
	// complaints are the errors in the browser's console, such as violations of the
	// page's policy.
	mu         sync.Mutex
	complaints []string
}

// newPage opens the page in a new browser. It skips the test if there is no Chromium.
func newPage(t *testing.T, f *fixture) *page {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	flags := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(browser), chromedp.NoSandbox, chromedp.Flag("force-device-scale-factor", "1"), chromedp.Flag("font-render-hinting", "none"))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(stop)
	limited, cancel := context.WithTimeout(allocator, 2*time.Minute)
	t.Cleanup(cancel)
	tab, closeTab := chromedp.NewContext(limited)
	t.Cleanup(closeTab)
	p := &page{Context: tab, t: t}
	chromedp.ListenTarget(tab, p.listen)
	p.run(cdplog.Enable(), chromedp.EmulateViewport(1200, 750), chromedp.Navigate(f.server.URL()))
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

// TestThePage selects a Foo and its tabs without a mouse. Then a change arrives without a
// reload, and keeps the focus.
func TestThePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	logEvent(t, path, "create", "foos", "")
	f := newFixture(t, team()...).start(t, path)
	p := newPage(t, f)
	p.awaitText("h2", "docs") // the first that is not ready
	p.press(kb.Tab)
	p.awaitFocus(".skip")
	p.press(kb.Tab, "b", "l")
	p.await("document.querySelectorAll('#list button').length == 1")
	p.awaitFocus("#filter")
	p.press(kb.ArrowDown, kb.Enter)
	p.awaitText("h2", "blog")
	p.awaitText("#badge", "Ready, Available")
	p.press(kb.Tab)
	p.awaitFocus("#tab-why[aria-selected=true]")
	p.press(kb.ArrowRight)
	p.awaitText("#panel-plan", "Nothing to do")
	p.press(kb.ArrowRight)
	p.await("document.images.length == 1 && document.images[0].complete && document.images[0].naturalWidth > 0")
	p.press(kb.Home)
	p.run(chromedp.Evaluate("window.isTheSame = document.activeElement", nil))
	f.setMessage(t, "blog", "Broken", "<img src=x onerror=document.title=1> it broke")
	p.awaitText("#badge", "Not ready, Broken")
	p.awaitText("#list button[data-name=blog]", "Not ready, Broken")
	p.awaitText("#panel-why", "<img src=x onerror=document.title=1> it broke")
	p.await("document.querySelector('#panel-why img') == null && document.activeElement == window.isTheSame")
	p.awaitText("#news", "blog: Not ready, Broken")
	p.awaitText("#panel-why .steps", "status ready: ") // the next sync corrects it
	footest.Must(t, f.foo.SamplecontrollerV1alpha1().Foos(footest.Namespace).Delete(t.Context(), "blog", metav1.DeleteOptions{}))
	p.awaitText("#none", "There is no Foo team-a/blog.")
	footest.Must(t, f.stop())
	p.awaitText("#connection", "disconnected")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = slices.DeleteFunc(p.complaints, func(text string) bool {
		return strings.Contains(text, "ERR_CONNECTION_REFUSED") || strings.Contains(text, "ERR_INCOMPLETE_CHUNKED")
	})
}

// TestThePicture draws the picture in the documents, if asked.
func TestThePicture(t *testing.T) {
	if !*update {
		t.Skip("-update is not set")
	}
	p := newPage(t, newFixture(t, team()...).start(t, ""))
	p.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}),
		chromedp.Evaluate(fmt.Sprintf("location.hash = '#%s/shop/why'", footest.Namespace), nil))
	p.awaitText("#panel-why", "exceeded quota")
	p.awaitText("#connection", "live")
	var png []byte
	p.run(chromedp.CaptureScreenshot(&png))
	footest.Must(t, os.WriteFile(picture, png, 0o644))
}
