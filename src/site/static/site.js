'use strict';

// Every page works without this script. What needs the script is hidden until the script shows it.

/** How long a button reads “Copied”, in milliseconds. */
const COPIED_MS = 2000;

/** The most results of a search. */
const MOST_FOUND = 12;

/** How long a call from the page may take, in milliseconds. */
const CALL_TIMEOUT_MS = 10_000;

/** @returns every element that a selector matches, within another or in the page */
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

/** @returns a new element with a text */
function element(name, text, properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, properties);
}

/** Makes a button copy the code of its block. */
function enableCopying(button) {
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(button.closest('figure').querySelector('code').textContent);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Select and copy';
    }
    setTimeout(() => (button.textContent = label), COPIED_MS);
  });
}

/** @returns what a browser has stored; null for nothing, or where it stores nothing for this site */
function recall(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Shows the alternative of a group that has a value, if one has it. */
function choose(group, value) {
  for (const input of all('.tab-input', group)) if (input.value === value) input.checked = true;
}

/** Shows the alternative that was chosen last in any group of the same kind, and remembers the choice in this one. */
function rememberChoice(group) {
  const kind = group.dataset.remember;
  choose(group, recall(kind));
  group.addEventListener('change', ({ target: { value } }) => {
    try {
      localStorage.setItem(kind, value);
    } catch {
      // The choice then applies to this page alone.
    }
    // Groups above this one may change their height, but it stays in its place.
    const { top } = group.getBoundingClientRect();
    for (const other of all(`[data-remember="${kind}"]`)) choose(other, value);
    scrollBy({ top: group.getBoundingClientRect().top - top, behavior: 'instant' });
  });
}

/** Makes only boxes that scroll a stop of the tab key. */
const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
});

/** Unfolds the target of the address. */
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let fold = target?.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true;
}

/** Marks the link to the section in view. */
function markPlace(sidebar) {
  const links = new Map(all('a[href^="#"]', sidebar).map((link) => [link.hash.slice(1), link]));
  const places = all('[id]').filter(({ id }) => links.has(id));
  const mark = () => {
    const current = places.findLast((place) => place.getBoundingClientRect().top < innerHeight / 3) ?? places[0];
    for (const [id, link] of links) {
      if (id === current?.id) link.setAttribute('aria-current', 'location');
      else link.removeAttribute('aria-current');
    }
  };
  addEventListener('scroll', mark, { passive: true });
  mark();
}

/** Searches the sections of the page by all words of the query. */
function enableSearch(form) {
  const input = form.querySelector('input');
  const list = form.querySelector('ul');
  let parts;
  const read = () =>
    all('[data-find], details[id], .prose h2[id], tr[id]', document.querySelector('.content')).map((part) => {
      const name = part.dataset.find ?? part.querySelector('summary, td')?.textContent ?? part.textContent;
      let text = (part.closest('.operation') ?? part).textContent;
      // The section of a heading ends at the next one.
      for (let next = part.nextElementSibling; part.matches('h2') && next && !next.matches('h2');) {
        text += ` ${next.textContent}`;
        next = next.nextElementSibling;
      }
      return { id: part.id, name, head: name.toLowerCase(), text: text.toLowerCase() };
    });
  form.hidden = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    list.querySelector('a')?.click();
  });
  input.addEventListener('input', () => {
    parts ??= read();
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (where) => (part) => words.every((word) => part[where].includes(word));
    const found = words.length === 0 ? [] : parts.filter(has('text'));
    found.sort((a, b) => Number(has('head')(b)) - Number(has('head')(a)));
    list.hidden = words.length === 0;
    list.replaceChildren(
      ...found.slice(0, MOST_FOUND).map(({ id, name }) => {
        const item = document.createElement('li');
        item.append(element('a', name, { href: `#${id}` }));
        return item;
      }),
      ...(found.length === 0 ? [element('li', 'No results', { className: 'muted' })] : []),
    );
  });
}

/** Makes a form call an operation. The key exists only in the fields of the page. */
function enableTrying(form) {
  const key = form.querySelector('[data-key]');
  const answer = form.querySelector('[data-answer]');
  form.hidden = false;
  for (const input of all('[data-parameter="since"]', form)) input.value = String(Math.floor(Date.now() / 1000) - 3600);
  key.addEventListener('input', () => {
    for (const other of all('[data-key]')) other.value = key.value;
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const headers = { Authorization: `Bearer ${key.value.trim()}` };
    const query = new URLSearchParams();
    let path = form.dataset.try;
    for (const { value, dataset } of all('[data-parameter]', form)) {
      if (value === '') continue;
      if (dataset.in === 'path') path = path.replace(`{${dataset.parameter}}`, encodeURIComponent(value));
      else if (dataset.in === 'query') query.set(dataset.parameter, value);
      else headers[dataset.parameter] = value;
    }
    answer.replaceChildren(element('p', 'Waiting…', { className: 'muted' }));
    try {
      const response = await fetch(query.size > 0 ? `${path}?${query}` : path, {
        headers,
        cache: 'no-store',
        credentials: 'omit',
        referrerPolicy: 'no-referrer',
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      show(answer, response, await response.text());
    } catch (error) {
      answer.replaceChildren(element('p', `No response: ${error.message}`, { className: 'field-error' }));
    }
  });
}

/** Shows a response: its status, and its header fields and body as plain text. */
function show(place, { status, ok, headers }, text) {
  const fields = document.createElement('dl');
  for (const [name, value] of headers) fields.append(element('dt', name), element('dd', value));
  let body = text;
  try {
    body = JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    // Not JSON, as after 304: shown as it is.
  }
  const badge = element('span', String(status), { className: `badge badge-${ok ? 'ok' : 'danger'}` });
  const line = document.createElement('p');
  line.append(badge);
  place.replaceChildren(line, fields);
  if (body !== '') place.append(element('pre', body, { tabIndex: 0 }));
}

/**
 * Sends a form once: after a double click, the browser would show the response to the second one, which has no key.
 *
 * @param {HTMLFormElement} form
 */
function sendOnce(form) {
  let isSent = false;
  form.addEventListener('submit', (event) => {
    if (isSent) event.preventDefault();
    isSent = true;
  });
  addEventListener('pageshow', () => (isSent = false));
}

/**
 * Makes a form open the browser's dialog for passkeys, and sends what the dialog returns. The service gets it as a form, so
 * its answer is a page.
 *
 * @param {HTMLFormElement} form
 */
function enablePasskey(form) {
  const isNew = form.dataset.passkey === 'create';
  const button = form.querySelector('[type="submit"]');
  const problems = all('[data-problem]', form);
  form.hidden = false;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.disabled = true;
    problems.forEach((problem) => (problem.hidden = true));
    try {
      const response = await fetch(`${form.action}/options`, {
        method: 'POST',
        body: new URLSearchParams(),
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      // The session has ended, or another sign-in is needed.
      if (response.redirected) return location.assign(response.url);
      if (!response.ok) throw new Error(String(response.status));
      const options = await response.json();
      const credential = isNew
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
      form.elements.credential.value = JSON.stringify(credential);
      form.submit();
    } catch ({ name }) {
      const problem = problems.find(({ dataset }) => dataset.problem === name) ?? problems.at(-1);
      problem.hidden = false;
      button.disabled = false;
    }
  });
}

// Browsers offer the clipboard on https and on loopback only.
if (navigator.clipboard) all('[data-copy]').forEach(enableCopying);
all('[data-remember]').forEach(rememberChoice);
all('pre[tabindex], .table-scroll').forEach((box) => sizes.observe(box));
all('[data-find-form]').forEach(enableSearch);
all('[data-try]').forEach(enableTrying);
all('.sidebar').forEach(markPlace);
all('[data-once]').forEach(sendOnce);
if (window.PublicKeyCredential?.parseCreationOptionsFromJSON) all('[data-passkey]').forEach(enablePasskey);
else all('[data-no-passkeys]').forEach((note) => (note.hidden = false));
addEventListener('hashchange', unfold);
// A browser may keep a page and show it again. A new key is shown once.
addEventListener('pagehide', () => {
  all('[data-key]').forEach((input) => (input.value = ''));
  all('[data-secret]').forEach((part) => (part.textContent = 'This key is no longer shown.'));
});
unfold();
