// SPDX-License-Identifier: Apache-2.0

// Opens the page of "kubectl foo ui" in Chromium, with forty Foos, in light and dark, wide and narrow. axe-core must
// find nothing wrong, no text may be cut, and each control must be reachable with the Tab key.
//
//   node check.js PLUGIN CHROMIUM AUDIT_LOG

'use strict';

const { spawn } = require('child_process');
const axe = require('axe-core');
const { chromium } = require('playwright-core');
const cluster = require('./cluster.js');

const [plugin, executablePath, auditLog] = process.argv.slice(2);
const { long, example, last } = cluster;
const absent = { namespace: 'team-a', name: 'absent' };

// serve starts the page for forty Foos, and returns its process and its address.
async function serve(server) {
  const args = ['ui', '--all-namespaces', `--server=http://127.0.0.1:${server.address().port}`, `--audit=${auditLog}`];
  const ui = spawn(plugin, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, KUBECONFIG: '/dev/null' } });
  process.once('exit', () => ui.kill());
  const address = await new Promise((resolve, reject) => {
    ui.stdout.once('data', (data) => resolve(String(data).trim()));
    ui.once('exit', (code) => reject(new Error(`${plugin} ui exited with code ${code}`)));
  });
  return { ui, address };
}

// judge returns what is wrong with the page as it is now.
async function judge(page) {
  const { violations, incomplete } = await page.evaluate(async () => {
    document.querySelectorAll('details').forEach((details) => { details.open = true; });
    return globalThis.axe.run();
  });
  // Where axe can't tell the contrast, such as below other text, people may not see any either.
  const unclear = incomplete.filter(({ id }) => id === 'color-contrast');
  const wrong = [...violations, ...unclear].flatMap(({ id, nodes }) => nodes.map((n) => `${id}: ${n.target.join(' ')}: ${n.failureSummary}`));
  return wrong.concat(await page.evaluate(cutTexts));
}

// cutTexts returns the elements whose content can't be seen whole. It runs in the page.
function cutTexts() {
  const isCut = (element) => {
    const { overflowX, overflowY, display } = getComputedStyle(element);
    const isWider = element.scrollWidth > element.clientWidth + 1 && !['auto', 'scroll'].includes(overflowX);
    const isHigher = element.scrollHeight > element.clientHeight + 1 && overflowY === 'hidden';
    return display !== 'inline' && element.clientWidth > 1 && (isWider || isHigher);
  };
  return [...document.querySelectorAll('html, body *')].filter(isCut).map((element) => `cut: ${element.outerHTML.slice(0, 200)}`);
}

// unreachable returns the controls that the Tab key does not reach, or that do not show it.
async function unreachable(page) {
  const count = await page.evaluate(() => {
    globalThis.controls = () => [...document.querySelectorAll('a[href], summary, [tabindex="0"]')].map((control) => control.outerHTML);
    globalThis.reached = new Set();
    document.querySelectorAll('details').forEach((details) => { details.open = true; });
    document.addEventListener('focusin', ({ target }) => getComputedStyle(target).outlineStyle === 'none' || globalThis.reached.add(target.outerHTML));
    return globalThis.controls().length;
  });
  for (let i = 0; i < count; i++) {
    await page.keyboard.press('Tab');
  }
  const missed = await page.evaluate(() => globalThis.controls().filter((control) => !globalThis.reached.has(control)));
  return missed.map((control) => `not reached by Tab, or without an outline: ${control.slice(0, 200)}`);
}

// hidden returns the selected Foo if it is scrolled out of the list.
function hidden(page) {
  return page.evaluate(() => {
    const [list, selected] = ['nav', 'nav [aria-current]'].map((selector) => document.querySelector(selector).getBoundingClientRect());
    return selected.top >= list.top && selected.bottom <= list.bottom ? [] : ['the selected Foo is scrolled out of the list'];
  });
}

// checkAll checks the page in a window of a width, and at last its state without a server.
async function checkAll(browser, { ui, address }, { colorScheme, width, isLast }) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 700 }, bypassCSP: true }); // else axe can't be loaded
  const page = await context.newPage();
  const report = (what, wrong) => {
    console.log(`${wrong.length ? 'FAILED' : 'ok'}: ${colorScheme}, ${width} pixels: ${what}`);
    wrong.slice(0, 5).forEach((text) => console.log(`  ${text.replace(/\n\s*/g, ' ')}`));
    if (wrong.length > 5) {
      console.log(`  and ${wrong.length - 5} more`);
    }
    process.exitCode ||= wrong.length ? 1 : 0;
  };
  const connection = (text) => page.waitForFunction((want) => document.getElementById('connection').textContent === want, text);
  const open = async (foo, { follows } = {}) => {
    await page.goto(`${address}&namespace=${foo.namespace}&name=${foo.name}`);
    await connection('live');
    if (!follows) { // else parts of it may be replaced while they are judged
      await page.evaluate(() => { XMLHttpRequest.prototype.send = () => {}; });
    }
  };
  await open(last);
  report('the last Foo in the list', await hidden(page));
  await page.setViewportSize({ width, height: 8000 }); // nothing is scrolled out of it
  for (const foo of [long, example, absent].slice(0, isLast ? 3 : 2)) {
    await open(foo);
    await page.evaluate(axe.source);
    report(`${foo.namespace}/${foo.name}`, await judge(page));
  }
  await open(example);
  report('the keyboard', await unreachable(page));
  if (isLast) {
    await open(long, { follows: true });
    ui.kill();
    await connection('disconnected');
    await page.evaluate(axe.source);
    report('disconnected', await judge(page));
  }
  await context.close();
}

async function main() {
  const server = await cluster.start();
  const browser = await chromium.launch({ executablePath });
  for (const colorScheme of ['light', 'dark']) {
    const served = await serve(server);
    for (const width of [1280, 400]) {
      await checkAll(browser, served, { colorScheme, width, isLast: width === 400 });
    }
  }
  await browser.close();
  server.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
