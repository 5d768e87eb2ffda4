// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
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

func urlOf(f *fixture, name, tab string) string {
	return f.server.URL() + "#" + footest.Namespace + "/" + name + "/" + tab
}

// TestTheKeyboardIsEnough selects a Foo and each of its tabs without a mouse.
func TestTheKeyboardIsEnough(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	p := newPage(t, f.server.URL(), 1200, 750)
	p.awaitText("#count", "of 5 ready")
	p.awaitText("h2", "docs") // the first that is not ready
	p.press(kb.Tab)
	p.awaitFocus(".skip")
	p.press(kb.Tab)
	p.awaitFocus("#filter")
	p.press(kb.Tab)
	p.awaitFocus("#list button[data-name=docs][aria-current]")
	p.press(kb.Home, kb.ArrowDown, kb.ArrowDown)
	p.awaitFocus("#list button[data-name=shop]")
	p.press(kb.Enter)
	p.awaitText("h2", "shop")
	p.awaitText("#panel-why", "exceeded quota")
	p.await("document.querySelectorAll('#list [tabindex=\"0\"]').length == 1")
	p.press(kb.Tab)
	p.awaitFocus("#tab-why[aria-selected=true]")
	p.press(kb.ArrowRight)
	p.awaitFocus("#tab-plan[aria-selected=true]")
	p.awaitText("#panel-plan", "Nothing to do")
	p.press(kb.ArrowRight)
	p.awaitText("#panel-history", "since it was started")
	p.press(kb.End)
	p.awaitText("#panel-timeline", "--audit FILE")
	p.press(kb.Tab)
	p.awaitFocus("#panel-timeline")
	p.press(kb.Tab, kb.Tab)
	p.run(chromedp.Focus("#filter"))
	p.press("w", "i")
	p.await("document.querySelectorAll('#list button').length == 1")
	p.press(kb.ArrowDown, kb.Enter)
	p.awaitText("h2", "wiki")
	p.awaitText("#panel-timeline", "--audit FILE")
}

// TestThePageIsLive checks that a change arrives without a reload, and keeps the focus, an
// opened list, and what the page says when the server is gone.
func TestThePageIsLive(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	p := newPage(t, urlOf(f, "blog", "why"), 1200, 750)
	p.awaitText("#badge", "Ready, Available")
	p.run(chromedp.Focus("#list button[data-name=blog]"), chromedp.Evaluate("window.isTheSame = document.activeElement", nil))
	f.setMessage(t, "blog", metav1.ConditionFalse, "Broken", "<img src=x onerror=document.title=1> it broke")
	p.awaitText("#badge", "Not ready, Broken")
	p.awaitText("#list button[data-name=blog]", "Not ready, Broken")
	p.awaitText("#panel-why", "<img src=x onerror=document.title=1> it broke")
	p.await("document.querySelector('main img') == null && document.activeElement == window.isTheSame")
	p.awaitText("#news", "blog: Not ready, Broken")
	p.awaitText("#panel-why .steps", "status ready: ") // the next sync corrects it
	footest.Must(t, f.foo.SamplecontrollerV1alpha1().Foos(footest.Namespace).Delete(t.Context(), "blog", metav1.DeleteOptions{}))
	p.awaitText("#none", "There is no Foo team-a/blog.")
	p.await("document.querySelectorAll('#list button').length == 4")
	footest.Must(t, f.stop())
	p.awaitText("#connection", "disconnected")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = slices.DeleteFunc(p.complaints, func(text string) bool {
		return strings.Contains(text, "ERR_CONNECTION_REFUSED") || strings.Contains(text, "ERR_INCOMPLETE_CHUNKED")
	})
}

// TestContrast checks the contrast of all texts to what is behind them, in both colour
// schemes: at least 4.5, as WCAG 2.2 AA asks.
func TestContrast(t *testing.T) {
	f := newFixture(t, team()...)
	path := auditLog(t)
	f.start(t, func(o *Options) { o.Audit = path })
	footest.Must(t, f.kube.Tracker().Delete(footest.Primary.Resource, footest.Namespace, "docs"))
	p := newPage(t, urlOf(f, "shop", "why"), 1200, 750)
	for _, scheme := range []string{"light", "dark"} {
		p.prefer(scheme)
		for tab, name := range map[string]string{"why": "shop", "plan": "docs", "history": "shop", "timeline": "blog"} {
			p.run(chromedp.Evaluate(fmt.Sprintf("location.hash = '#%s/%s/%s'", footest.Namespace, name, tab), nil))
			p.await(fmt.Sprintf("detail && detail.name == %q && document.getElementById('panel-%s').childElementCount > 0", name, tab))
			p.await("[...document.images].every((image) => image.complete)")
			var pale []string
			p.run(chromedp.Evaluate(paleTexts, &pale))
			if len(pale) > 0 {
				t.Errorf("%s, %s: %s", scheme, tab, strings.Join(pale, "; "))
			}
			p.shoot(scheme + "-" + tab)
		}
	}
	p.run(chromedp.EmulateViewport(400, 800))
	p.await("document.documentElement.scrollWidth <= 400")
	p.shoot("narrow")
}

// auditLog returns the path of a log with the life of the Foo blog.
func auditLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	log := event(-time.Minute, "create", "foos", "kubectl", ready("False", "Progressing")) +
		event(-time.Minute+40*time.Millisecond, "update", "foos/status", "sample-controller", ready("True", "Available"))
	footest.Must(t, os.WriteFile(path, []byte(log), 0o600))
	return path
}

// paleTexts returns the texts with too little contrast.
const paleTexts = `(() => {
	const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
	const luminance = (rgb) => {
		const [r, g, b] = rgb.map((c) => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (node) => {
		for (; node; node = node.parentElement) {
			const colour = numbers(getComputedStyle(node).backgroundColor);
			if (colour.length < 4 || colour[3] > 0) return colour.slice(0, 3);
		}
		return [255, 255, 255];
	};
	const pale = [];
	for (const node of document.querySelectorAll('body *')) {
		const text = [...node.childNodes].filter((child) => child.nodeType === 3).map((child) => child.nodeValue.trim()).join('');
		if (!text || !node.checkVisibility() || node.closest('svg, noscript')) continue;
		const [a, b] = [luminance(numbers(getComputedStyle(node).color).slice(0, 3)), luminance(behind(node))];
		const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (contrast < 4.5) pale.push(text.slice(0, 40) + ' ' + contrast.toFixed(2));
	}
	return pale;
})()`

// TestThePicture draws the picture in the documents, if asked, and checks that it is small.
func TestThePicture(t *testing.T) {
	if *update {
		f := newFixture(t, team()...).start(t)
		p := newPage(t, urlOf(f, "shop", "why"), 1200, 750)
		p.prefer("light")
		p.awaitText("#panel-why", "exceeded quota")
		p.awaitText("#connection", "live")
		var png []byte
		p.run(chromedp.CaptureScreenshot(&png))
		footest.Must(t, os.WriteFile(picture, png, 0o644))
	}
	info, err := os.Stat(picture)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no picture")
	}
	footest.Must(t, err)
	if info.Size() > 150<<10 {
		t.Errorf("%s has %d bytes", picture, info.Size())
	}
}

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
