'use strict';

// The contents of the tabs, as elements.

// tone returns the class for a condition's status.
function tone(status) {
  return {True: 'good', False: 'bad', '': 'none'}[status] || 'warn';
}

function word(status) {
  return {True: 'Ready', False: 'Not ready', '': 'No condition'}[status] || 'Unknown';
}

// advice returns what the user can do, with commands as code.
function advice(text) {
  if (!text) {
    return null;
  }
  const command = text.indexOf('kubectl ');
  const parts = command < 0 ? [text] : [text.slice(0, command), element('code', {}, text.slice(command))];
  return element('p', {class: 'advice'}, parts);
}

function finding(found, role) {
  return element('div', {class: 'finding ' + (role || '')}, element('p', {}, found.text), advice(found.advice));
}

function part(title, ...content) {
  return element('section', {class: 'part', 'data-key': title}, element('h3', {}, title), content);
}

function whyPanel(detail) {
  const why = detail.why;
  const since = why.since ? `for ${why.since}` : '';
  return [
    element('div', {class: 'state ' + tone(detail.status)},
      element('p', {class: 'words'}, why.state.text, ' ', element('span', {class: 'dim'}, since)),
      advice(why.state.advice)),
    (why.findings || []).map((found) => finding(found, 'warn')),
    part('Owned objects', element('ul', {class: 'tree'}, element('li', {},
      node('Foo', why.name, word(detail.status).toLowerCase()),
      why.has.length ? tree(why.has, new Set([why.state.advice])) : element('p', {class: 'dim'}, 'None.')))),
    part('Next sync', nextSync(detail)),
    why.events ? part('Events, newest first', events(why.events)) : null,
    part('Controller', finding(why.controller)),
    (why.missing || []).map((text) => finding({text: 'Not shown: ' + text}, 'warn')),
  ];
}

// tree returns objects with the objects below them. It does not repeat advice.
function tree(objects, said) {
  return element('ul', {class: 'tree'}, objects.map((object) => element('li', {'data-key': object.kind + '/' + object.name},
    node(object.kind, object.name, object.state),
    (object.waits || []).map((wait) => {
      const known = said.has(wait.advice);
      said.add(wait.advice);
      return finding(known ? {text: wait.text} : wait, 'wait');
    }),
    object.below ? tree(object.below, said) : null)));
}

function node(kind, name, state) {
  return element('div', {class: 'node'},
    element('span', {class: 'kind'}, kind), ' ', element('b', {}, name), ' ', element('span', {class: 'dim'}, state));
}

function nextSync(detail) {
  const next = detail.why.next;
  const steps = next.writes.map((write) => element('li', {}, verb(write.verb), ' ', write.kind, ' ', element('b', {}, write.name),
    write.drift && write.verb !== 'create' ? element('span', {class: 'dim'}, ' ' + write.drift) : null));
  if (detail.after && detail.after !== detail.before) {
    steps.push(element('li', {}, verb('status'), ' ', detail.after));
  } else if (next.status) {
    steps.push(element('li', {}, verb('status'), ' other fields change'));
  }
  return steps.length ? element('ul', {class: 'steps'}, steps) : element('p', {class: 'dim'}, 'It writes nothing.');
}

function verb(text) {
  return element('span', {class: 'verb ' + text}, text);
}

function events(all) {
  return element('div', {class: 'wide'}, element('table', {},
    element('thead', {}, element('tr', {}, ['Age', 'Object', 'Reason', 'Message'].map((title) => element('th', {scope: 'col'}, title)))),
    element('tbody', {}, all.slice(0, 50).map((event) => element('tr', {class: event.type === 'Warning' ? 'warning' : ''},
      element('td', {}, event.age), element('td', {}, event.object), element('td', {class: 'reason'}, event.reason), element('td', {}, event.message))))));
}

function planPanel(detail) {
  const next = detail.why.next;
  const steps = next.writes.map((write) => element('article', {class: 'write', 'data-key': write.kind + '/' + write.name},
    element('h3', {}, verb(write.verb), ' ', write.kind, ' ', write.name),
    write.drift && write.verb !== 'create' ? element('p', {class: 'dim'}, write.drift) : null,
    diff(write.diff, `Diff of ${write.kind} ${write.name}`)));
  if (next.status) {
    steps.push(element('article', {class: 'write', 'data-key': 'status'},
      element('h3', {}, verb('status'), next.statusMayWait ? ' within seconds' : ''),
      element('dl', {class: 'pair'},
        element('dt', {}, 'Now'), element('dd', {}, detail.before || 'no condition'),
        element('dt', {}, 'After'), element('dd', {}, detail.after))));
  }
  const text = steps.length
    ? 'What the next sync would write, with a controller of this build. Later syncs may write more.'
    : 'Nothing to do: the next sync writes nothing.';
  return [element('p', {class: steps.length ? 'dim' : 'state good'}, text), steps];
}

// diff returns a unified diff with colored lines.
function diff(text, label) {
  if (!text) {
    return null;
  }
  const classes = {'+': 'new', '-': 'old', '@': 'place'};
  const lines = text.replace(/\n$/, '').split('\n').map((line, i) =>
    element('span', {class: 'line ' + (i < 2 ? 'file' : classes[line[0]] || '')}, line + '\n'));
  return element('pre', {class: 'diff', tabindex: '0', role: 'region', 'aria-label': label}, element('code', {}, lines));
}

function timelinePanel(detail, address) {
  const text = detail.timeline;
  if (!text) {
    return [element('p', {class: 'empty'}, detail.noTimeline)];
  }
  const source = address('timeline.svg', {namespace: detail.namespace, name: detail.name, version: text.length});
  return [
    element('p', {}, element('a', {href: source, target: '_blank', rel: 'noreferrer'}, 'Open the picture'), ' to see tooltips on its marks'),
    element('img', {src: source, class: 'timeline', alt: 'A lane for each actor, a mark for each write, and arrows from cause to effect; the text below contains the same'}),
    element('details', {'data-key': 'text'}, element('summary', {}, 'Show as text'), element('pre', {tabindex: '0'}, text)),
  ];
}
