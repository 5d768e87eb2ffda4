// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// ui is a server of the page for a namespace.
type ui struct {
	namespace
	*testcluster.Process

	address string
}

// startUI starts a page, until the test ends.
func (ns namespace) startUI(args ...string) ui {
	ns.Helper()
	var log testcluster.Log
	command := exec.Command(plugin, append(args, "ui", "--kubeconfig="+kubeconfig, "-n", ns.name)...)
	command.Stdout, command.Stderr = &log, &log
	process, err := testcluster.StartProcess(command)
	footest.Must(ns.T, err)
	ns.Cleanup(func() { process.Stop(limit) })
	if err := log.Await(ns.Context(), process, "http://127.0.0.1", 1); err != nil {
		ns.Fatalf("%v\n%s", err, log.String())
	}
	return ui{ns, process, strings.TrimSpace(log.String())}
}

// get gets a resource of the page about the Foo "a".
func (u ui) get(ctx context.Context, path string) (string, error) {
	address := strings.Replace(u.address, "/?", "/"+path+"?", 1) + "&name=a&namespace=" + u.name
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	return string(body), err
}

// await waits until the page has all texts.
func (u ui) await(texts ...string) {
	u.Helper()
	footest.Must(u.T, testcluster.Await(u.Context(), limit, "the page shows it", func(ctx context.Context) error {
		page, err := u.get(ctx, "")
		for _, text := range texts {
			if err == nil && !strings.Contains(page, text) {
				err = fmt.Errorf("there is no %q in %s", text, page)
			}
		}
		return err
	}))
}

// TestThePageFollows checks that what the page reads is in it, and each change.
func TestThePageFollows(t *testing.T) {
	controller := startController(t)
	ns := newNamespace(t, "ui")
	ns.withReadyFoo()
	page := ns.startUI("--audit=" + auditLog)
	page.await("controller: running", `<span class="dim reason">Ready, Available</span>`, `<span class="kind">Deployment</span> <b>web</b> <span class="dim">2 of 2 available</span>`,
		`<span class="kind">ReplicaSet</span>`, `<span class="kind">Pod</span>`, "Events, newest first", "It writes nothing.", "create  foos a")
	if picture, err := page.get(t.Context(), "timeline.svg"); err != nil || !strings.HasPrefix(picture, "<svg ") {
		t.Errorf("the picture: %v\n%s", err, picture)
	}
	ns.patchFoo(`{"spec":{"replicas":3}}`)
	page.await("3 of 3 available", "has 3 of 3 Pods available", "patch   foos a")
	controller.Stop(limit)
	ns.patchFoo(`{"spec":{"replicas":4}}`)
	page.await(`<span class="verb update">update</span> Deployment <b>web</b>`, `<span class="line new">&#43;  replicas: 4</span>`, `<span class="verb status">status</span> not ready, Progressing`)
	ns.kubectl("delete", "foo", "a")
	page.await("There are no Foos yet", "there is no Foo &#34;a&#34;")
}

// picture is the picture in the documents. To draw it again, if Chromium is installed:
// GO_TEST_FLAGS='-run=TestThePage$ -update' make test-kubectl-foo.
const picture = tree + "/docs/kubectl-foo-ui.png"

var update = flag.Bool("update", false, "Draw the picture for the documents again.")

// page is a page in a browser.
type page struct {
	context.Context // chromedp keeps its state in it

	t *testing.T
	// complaints are the errors in the browser's console, such as violations of the
	// page's policy.
	complaints testcluster.Log
}

// newPage opens the page in a new browser.
func newPage(t *testing.T, address string) *page {
	t.Helper()
	flags := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.Flag("force-device-scale-factor", "1"), chromedp.Flag("font-render-hinting", "none"))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(stop)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	p := &page{t: t, Context: tab}
	chromedp.ListenTarget(tab, func(event any) {
		switch event := event.(type) {
		case *cdplog.EventEntryAdded:
			fmt.Fprintln(&p.complaints, event.Entry.Level, event.Entry.Text, event.Entry.URL)
		case *cdpruntime.EventExceptionThrown:
			fmt.Fprintln(&p.complaints, event.ExceptionDetails.Error())
		}
	})
	p.run(cdplog.Enable(), chromedp.EmulateViewport(1200, 750), chromedp.Navigate(address))
	return p
}

func (p *page) run(actions ...chromedp.Action) {
	p.t.Helper()
	footest.Must(p.t, chromedp.Run(p, actions...))
}

// press presses keys, one after the other.
func (p *page) press(keys string) {
	p.t.Helper()
	p.run(chromedp.KeyEvent(keys))
}

// await waits until an expression is true, perhaps on the next page.
func (p *page) await(expression string) {
	p.t.Helper()
	footest.Must(p.t, testcluster.Await(p, limit, expression, func(context.Context) error {
		var is bool
		var text string
		err := chromedp.Run(p, chromedp.Evaluate(expression, &is), chromedp.Evaluate("document.activeElement.outerHTML + '\\n' + document.body.innerText", &text))
		if err == nil && !is {
			err = errors.New(text)
		}
		return err
	}))
}

// awaitText waits until an element has a text.
func (p *page) awaitText(selector, text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("[...document.querySelectorAll(%q)].some((node) => node.checkVisibility() && node.innerText.includes(%q))", selector, text))
}

// TestThePage selects a Foo without a mouse. Then a change arrives without a reload, and keeps the
// focus. With -update, it draws the picture in the documents.
func TestThePage(t *testing.T) {
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("there is no chromium")
	}
	controller := startController(t)
	ns := newNamespace(t, "team-a")
	ns.makeTeam()
	server := ns.startUI("--audit=" + auditLog)
	p := newPage(t, server.address)
	p.awaitText("h2", "docs") // the first that is not ready
	if *update {
		p.draw(server.address+"&namespace=team-a&name=shop", "exceeded quota")
	}
	controller.Stop(limit)
	p.press(kb.Tab)
	p.await("document.activeElement.matches('.skip')")
	p.press(kb.Tab + kb.Enter) // the first in the list
	p.awaitText("h2", "blog")
	p.awaitText("#badge", "Ready, Available")
	p.awaitText("[data-part=next]", "It writes nothing.")
	p.await("document.images.length == 1 && document.images[0].complete && document.images[0].naturalWidth > 0")
	p.press(kb.Tab + kb.Tab)
	p.await("document.activeElement.matches('#of-team-a-blog[aria-current]')")
	ns.kubectl("patch", "foo", "blog", "--subresource=status", "--type=merge", "-p", brokenStatus)
	p.awaitText("#badge", "Not ready, Broken")
	p.awaitText("#of-team-a-blog", "Not ready, Broken")
	p.awaitText("[data-part=why]", "<img src=x onerror=document.title=1> it broke")
	p.await("document.images.length == 1 && document.activeElement.matches('#of-team-a-blog')")
	p.awaitText("#news", "blog: Not ready, Broken")
	p.awaitText(".steps", "status ready: ") // the next sync corrects it
	ns.kubectl("delete", "foo", "blog")
	p.awaitText("[data-part=why]", `no Foo "blog" in the namespace "team-a"`)
	server.Stop(limit)
	p.awaitText("#connection", "disconnected")
	for line := range strings.Lines(p.complaints.String()) {
		if !strings.Contains(line, "ERR_CONNECTION_REFUSED") {
			t.Error("the browser says", line)
		}
	}
}

const brokenStatus = `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Broken","lastTransitionTime":"2026-03-02T12:00:00Z",
	"observedGeneration":1,"message":"<img src=x onerror=document.title=1> it broke"}]}}`

// makeTeam creates a team's Foos, each in another state.
func (ns namespace) makeTeam() {
	ns.Helper()
	ns.kubectl("create", "deployment", "wiki", "--image=other")
	for _, name := range []string{"wiki", "blog", "docs"} {
		ns.kubectl("create", "-f", ns.file(manifestOf(name, name)))
	}
	ns.kubectl("wait", "--for=condition=Ready", "foo/blog", "foo/docs", "--timeout="+limit.String())
	ns.kubectl("patch", "deployment", "docs", "-p", paused)
	ns.kubectl("create", "quota", "team-a", "--hard=pods=6")
	ns.kubectl("create", "-f", ns.file(manifestOf("shop", "shop")))
	ns.kubectl("wait", "--for=jsonpath={.status.conditions[0].reason}=DeploymentFailed", "foo/shop", "--timeout="+limit.String())
	ns.kubectl("wait", "--for=condition=Ready=false", "foo/docs", "foo/wiki", "--timeout="+limit.String())
}

// draw draws the picture for the documents, of an address, once the page has a text.
func (p *page) draw(address, text string) {
	p.t.Helper()
	p.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}), chromedp.Navigate(address))
	p.awaitText("[data-part=why]", text)
	p.awaitText("#connection", "live")
	var png []byte
	p.run(chromedp.CaptureScreenshot(&png))
	footest.Must(p.t, os.WriteFile(picture, png, 0o644))
}
