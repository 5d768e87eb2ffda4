'use strict';

// Keeps the page up to date: every two seconds while it is visible, it takes the parts that differ from a fresh copy.

function follow() {
  const request = new XMLHttpRequest();
  request.open('GET', location.href);
  request.responseType = 'document'; // it is not a sink of trusted types, and runs no scripts
  request.onload = () => {
    take(request.response);
    connection(request.status === 200 ? 'live' : 'out of date', request.status === 200);
  };
  request.onerror = () => connection('disconnected', false);
  request.onloadend = () => setTimeout(() => document.hidden || follow(), 2000);
  request.send();
}

// take replaces the parts of the page that differ from those of a fresh one. What the user has opened or focused
// remains so, and no text is replaced while some is selected.
function take(fresh) {
  if (!fresh || !getSelection().isCollapsed) {
    return;
  }
  for (const part of fresh.querySelectorAll('[data-part]')) {
    const old = document.querySelector(`[data-part="${part.dataset.part}"]`);
    for (const opened of old.querySelectorAll('details[open]')) {
      part.querySelector('#' + CSS.escape(opened.id))?.setAttribute('open', '');
    }
    if (old.outerHTML !== part.outerHTML) {
      const focused = old.contains(document.activeElement) && document.activeElement.id;
      old.replaceWith(part);
      if (focused) {
        document.getElementById(focused)?.focus();
      }
    }
  }
  if (fresh.title && fresh.title !== document.title) {
    document.title = fresh.title;
    document.getElementById('news').textContent = fresh.title; // for screen readers
  }
}

function connection(text, isGood) {
  const pill = document.getElementById('connection');
  if (pill.textContent !== text) { // screen readers would read it again
    pill.textContent = text;
    pill.className = 'pill ' + (isGood ? 'good' : 'bad');
    document.body.classList.toggle('stale', !isGood);
  }
}

// showSelected scrolls the list to the selected Foo. scrollIntoView would also let the Tab key start there.
function showSelected() {
  const list = document.querySelector('nav');
  const selected = list.querySelector('[aria-current]');
  if (selected) {
    list.scrollTop = selected.offsetTop - list.offsetTop - list.clientHeight / 2;
  }
}

showSelected();
document.addEventListener('visibilitychange', () => document.hidden || follow());
follow();
