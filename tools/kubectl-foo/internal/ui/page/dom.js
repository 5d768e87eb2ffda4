'use strict';

// Builds and updates elements. Text stays text: nothing here parses HTML.

// element returns an element with attributes and children: nodes, strings, arrays of these,
// or null for nothing.
function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  node.append(...nodes(children));
  return node;
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== '');
}

// update turns the children of a node into fresh ones. It keeps existing nodes, and with them
// focus, selected text, scroll positions and opened details.
function update(parent, ...fresh) {
  const wanted = nodes(fresh).map((child) => (typeof child === 'string' ? document.createTextNode(child) : child));
  const keys = new Set(wanted.map(keyOf).filter(Boolean));
  let at = parent.firstChild;
  for (const child of wanted) {
    while (at && keyOf(at) && keyOf(at) !== keyOf(child) && !keys.has(keyOf(at))) {
      at = removed(at);
    }
    if (at && isLike(at, child)) {
      copy(child, at);
      at = at.nextSibling;
    } else if (at && !keyOf(at)) {
      const next = at.nextSibling;
      parent.replaceChild(child, at);
      at = next;
    } else {
      parent.insertBefore(child, at);
    }
  }
  while (at) {
    at = removed(at);
  }
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

// keyOf returns what identifies an element among its siblings, or undefined.
function keyOf(node) {
  return node.dataset ? node.dataset.key : undefined;
}

function isLike(a, b) {
  return a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

// kept are attributes that belong to the user.
const kept = ['open'];

function copy(from, to) {
  if (from.nodeType === Node.TEXT_NODE) {
    if (to.nodeValue !== from.nodeValue) {
      to.nodeValue = from.nodeValue;
    }
    return;
  }
  for (const name of to.getAttributeNames()) {
    if (!from.hasAttribute(name) && !kept.includes(name)) {
      to.removeAttribute(name);
    }
  }
  for (const name of from.getAttributeNames()) {
    if (to.getAttribute(name) !== from.getAttribute(name) && !kept.includes(name)) {
      to.setAttribute(name, from.getAttribute(name));
    }
  }
  update(to, ...from.childNodes);
}
