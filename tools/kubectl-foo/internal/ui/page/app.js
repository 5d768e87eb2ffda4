'use strict';

// The page: what is selected, the list, the tabs, and the state of the cluster.

const token = new URLSearchParams(location.search).get('token');
const byId = (id) => document.getElementById(id);
const tabs = [...document.querySelectorAll('[role=tab]')];
const panels = {why: whyPanel, plan: planPanel, timeline: timelinePanel};

// selected comes from the fragment of the address: #namespace/name/tab.
let selected = parse(location.hash);
let list = null;
let detail = null;
let last = ''; // the last answer, as text
let turn = 0; // counts the requests

function parse(hash) {
  const [namespace, name, tab] = hash.slice(1).split('/').map(decodeURIComponent);
  return {namespace: namespace || '', name: name || '', tab: tab in panels ? tab : 'why'};
}

function address(path, parameters) {
  return path + '?' + new URLSearchParams({token, ...parameters});
}

function fragment(selection) {
  return '#' + [selection.namespace, selection.name, selection.tab].map(encodeURIComponent).join('/');
}

function select(change) {
  location.hash = fragment({...selected, ...change});
}

window.addEventListener('hashchange', () => {
  const before = selected;
  selected = parse(location.hash);
  if (before.namespace !== selected.namespace || before.name !== selected.name) {
    detail = null;
    last = '';
    follow();
  }
  show();
});

// follow asks for the state now, and then every two seconds while the page is visible. An answer about an earlier
// selection is dropped.
async function follow() {
  const mine = ++turn;
  try {
    const response = await fetch(address('state', {namespace: selected.namespace, name: selected.name}));
    const answer = await response.text();
    if (mine === turn && response.ok) {
      connection('live', 'good');
      take(answer);
    } else if (mine === turn) {
      last = '';
      connection('out of date', 'bad');
      update(byId('problems'), element('p', {}, 'out of date: ' + answer));
    }
  } catch {
    if (mine === turn) {
      connection('disconnected', 'bad');
    }
  }
  setTimeout(() => mine === turn && !document.hidden && follow(), 2000);
}

// take shows a new state.
function take(answer) {
  if (answer === last) {
    return;
  }
  last = answer;
  list = JSON.parse(answer);
  if (!selected.name && list.items.length) {
    const first = list.items.find((item) => item.status !== 'True') || list.items[0];
    location.replace(fragment({...selected, namespace: first.namespace, name: first.name}));
  }
  tell(detail, detail = list.detail);
  show();
}

function connection(text, kind) {
  if (byId('connection').textContent === text) {
    return; // screen readers would read it again
  }
  byId('connection').textContent = text;
  byId('connection').className = 'pill ' + kind;
  document.body.classList.toggle('stale', kind === 'bad');
}

// tell makes screen readers announce a change of state.
function tell(before, now) {
  if (before && now && before.why && now.why && (before.status !== now.status || before.reason !== now.reason)) {
    byId('news').textContent = `${now.name}: ${word(now.status)}, ${now.reason}`;
  }
}

function show() {
  showList();
  showDetail();
}

function showList() {
  if (!list) {
    return;
  }
  byId('scope').textContent = list.namespace ? `in ${list.namespace}` : 'in all namespaces';
  byId('controller').textContent = {running: 'controller: running', stopped: 'controller: not running'}[list.controller.state] || 'controller: unknown';
  byId('controller').className = 'pill ' + ({running: 'good', stopped: 'bad'}[list.controller.state] || 'none');
  byId('controller').title = list.controller.text;
  update(byId('problems'), list.problem ? element('p', {}, list.problem) : []);
  const filter = byId('filter').value.trim().toLowerCase();
  const shown = list.items.filter((item) => `${item.namespace}/${item.name} ${word(item.status)} ${item.reason}`.toLowerCase().includes(filter));
  const ready = shown.filter((item) => item.status === 'True').length;
  byId('count').textContent = shown.length ? `${ready} of ${shown.length} ready` : filter ? 'no matches' : 'none';
  const current = shown.some(isSelected);
  update(byId('list'), shown.map((item, i) => element('li', {'data-key': item.namespace + '/' + item.name}, row(item, current ? isSelected(item) : i === 0))));
}

function isSelected(item) {
  return item.namespace === selected.namespace && item.name === selected.name;
}

function row(item, inTabOrder) {
  return element('button', {
    type: 'button', 'data-namespace': item.namespace, 'data-name': item.name,
    'aria-current': isSelected(item) ? 'true' : null, tabindex: inTabOrder ? '0' : '-1',
  },
  element('span', {class: 'dot ' + tone(item.status), 'aria-hidden': 'true'}),
  element('span', {class: 'what'}, element('span', {class: 'name'}, list.namespace ? '' : element('span', {class: 'dim'}, item.namespace + '/'), item.name),
    element('span', {class: 'dim reason'}, [word(item.status), item.reason].filter(Boolean).join(', '))),
  element('span', {class: 'dim age'}, item.age));
}

function showDetail() {
  const found = Boolean(detail && detail.why);
  byId('detail').hidden = !found;
  byId('none').hidden = found;
  if (!found) {
    byId('none').textContent = nothing();
    return;
  }
  document.title = `${detail.name}: ${word(detail.status)}`;
  byId('name').textContent = detail.name;
  byId('badge').textContent = [word(detail.status), detail.reason].filter(Boolean).join(', ');
  byId('badge').className = 'pill ' + tone(detail.status);
  for (const tab of tabs) {
    const isOpen = tab.dataset.tab === selected.tab;
    tab.setAttribute('aria-selected', String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    byId('panel-' + tab.dataset.tab).hidden = !isOpen;
  }
  update(byId('panel-' + selected.tab), panels[selected.tab](detail, address));
}

// nothing explains why there are no details.
function nothing() {
  if (detail) {
    return detail.error;
  }
  return list && !list.items.length && !selected.name ? 'There are no Foos yet. New ones appear here.' : 'Loading…';
}

// move moves the focus with the arrow keys among elements.
function move(event, elements, previous, next) {
  const at = elements.indexOf(document.activeElement);
  const to = {[previous]: at - 1, [next]: at + 1, Home: 0, End: elements.length - 1}[event.key];
  if (at < 0 || to === undefined || event.altKey || event.ctrlKey || event.metaKey) {
    return null;
  }
  event.preventDefault();
  const target = elements[Math.max(0, Math.min(elements.length - 1, to))];
  target.focus();
  return target;
}

byId('list').addEventListener('keydown', (event) => {
  const buttons = [...byId('list').querySelectorAll('button')];
  const target = move(event, buttons, 'ArrowUp', 'ArrowDown');
  for (const button of target ? buttons : []) {
    button.tabIndex = button === target ? 0 : -1;
  }
});

byId('list').addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (button) {
    select({namespace: button.dataset.namespace, name: button.dataset.name});
  }
});

byId('filter').addEventListener('input', showList);
byId('filter').addEventListener('keydown', (event) => {
  const first = byId('list').querySelector('button');
  if (first && event.key === 'ArrowDown') {
    event.preventDefault();
    first.focus();
  }
});

for (const tab of tabs) {
  tab.addEventListener('click', () => select({tab: tab.dataset.tab}));
  tab.addEventListener('keydown', (event) => {
    const target = move(event, tabs, 'ArrowLeft', 'ArrowRight');
    if (target) {
      select({tab: target.dataset.tab});
    }
  });
}

document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault(); // the fragment holds the selection
  byId('main').focus();
});

document.addEventListener('visibilitychange', () => document.hidden || follow());

follow();
show();
