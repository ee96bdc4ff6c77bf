'use strict';

// Every page works without this script. What needs it has the class "scripted", which the stylesheet hides without scripts.

/** How long a button reads “Copied”, in milliseconds. */
const COPIED_MS = 2000;

/** How long the search waits for the next letter, in milliseconds. */
const SEARCH_DELAY_MS = 80;

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

/** Stores a choice, which applies to this page alone where the browser stores nothing. */
function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Another page has its own default then.
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
    remember(kind, value);
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

/** Opens the search with its button, `/` or Ctrl-K (Cmd-K), and shows the server's results while somebody types. */
function enableSearch(dialog) {
  const input = dialog.querySelector('[role="combobox"]');
  const list = dialog.querySelector('[role="listbox"]');
  const status = dialog.querySelector('[data-search-status]');
  const slash = dialog.querySelector('[data-search-slash]');
  let options = [];
  let chosen = -1;
  let newest;
  let shown = Promise.resolve();

  const choose = (index) => {
    options[chosen]?.removeAttribute('aria-selected');
    chosen = index;
    options[chosen]?.setAttribute('aria-selected', 'true');
    options[chosen]?.scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', options[chosen]?.id ?? '');
  };

  const fill = (message, groups) => {
    status.textContent = message;
    list.replaceChildren(...groups);
    options = all('a', list);
    for (const group of groups) group.setAttribute('role', 'group');
    for (const part of all('h2, ul, li', list)) part.setAttribute('role', 'presentation');
    options.forEach((option, index) => {
      Object.assign(option, { id: `found-${index}`, tabIndex: -1 });
      option.setAttribute('role', 'option');
    });
    list.hidden = options.length === 0;
    list.scrollTop = 0;
    input.setAttribute('aria-expanded', String(options.length > 0));
    choose(options.length > 0 ? 0 : -1);
  };

  const search = async () => {
    newest?.abort();
    newest = new AbortController();
    const { signal } = newest;
    await new Promise((resolve) => setTimeout(resolve, SEARCH_DELAY_MS));
    if (signal.aborted) return;
    try {
      const response = await fetch(`${input.form.action}?${new URLSearchParams({ q: input.value })}`, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]),
      });
      if (!response.ok) throw new Error(response.status);
      const page = new DOMParser().parseFromString(await response.text(), 'text/html');
      if (signal.aborted) return;
      fill(page.querySelector('[data-found-status]').textContent, all('[data-found] > *', page));
    } catch {
      if (!signal.aborted) fill('The search did not respond. Check your connection, then type again.', []);
    }
  };

  const open = () => {
    dialog.showModal();
    input.focus();
    input.select();
  };
  const canOpen = () => document.querySelector('dialog[open]') === null;

  slash.checked = recall('search-slash') !== 'off';
  slash.addEventListener('change', () => remember('search-slash', slash.checked ? 'on' : 'off'));
  all('[data-search-open]').forEach((button) => button.addEventListener('click', open));
  all('[data-search-close]', dialog).forEach((button) => button.addEventListener('click', () => dialog.close()));
  addEventListener('keydown', (event) => {
    const isSlash = event.key === '/' && slash.checked && !event.ctrlKey && !event.metaKey && !event.altKey;
    const isTyping = event.target.closest?.('input:not([type="radio"], [type="checkbox"]), textarea, select') !== null;
    const isCtrlK = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey;
    if (!canOpen() || !((isSlash && !isTyping) || isCtrlK)) return;
    event.preventDefault();
    open();
  });
  input.addEventListener('input', () => (shown = search()));
  input.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || event.isComposing || options.length === 0) return;
    event.preventDefault();
    choose((chosen + step + options.length) % options.length);
  });
  input.form.addEventListener('submit', async (event) => {
    event.preventDefault();
    await shown;
    options[chosen]?.click();
  });
  dialog.addEventListener('click', ({ target }) => {
    // The dialog itself is clicked only beside its content. A result may be on this page.
    if (target === dialog || target.closest('[role="option"]')) dialog.close();
  });
}

/** Makes a link to a heading copy its address as well. */
function enableLinkCopying(link) {
  link.addEventListener('click', async () => {
    await navigator.clipboard.writeText(link.href).catch(() => undefined);
    link.dataset.copied = '';
    setTimeout(() => delete link.dataset.copied, COPIED_MS);
  });
}

/** Makes a form call an operation. The key exists only in the fields of the page. */
function enableTrying(form) {
  const key = form.querySelector('[data-key]');
  const answer = form.querySelector('[data-answer]');
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

/** Puts a page that can be loaded again into the history, in place of the answer to a form. */
function replaceAnswer({ dataset: { address } }) {
  history.replaceState(history.state, '', address);
}

// Browsers offer the clipboard on https and on loopback only.
if (navigator.clipboard) {
  all('[data-copy]').forEach(enableCopying);
  all('.anchor').forEach(enableLinkCopying);
} else {
  all('[data-copy]').forEach((button) => (button.hidden = true));
}
all('[data-remember]').forEach(rememberChoice);
all('pre[tabindex], .table-scroll').forEach((box) => sizes.observe(box));
all('[data-search]').forEach(enableSearch);
all('[data-try]').forEach(enableTrying);
all('.sidebar').forEach(markPlace);
all('[data-once]').forEach(sendOnce);
if (window.PublicKeyCredential?.parseCreationOptionsFromJSON) all('[data-passkey]').forEach(enablePasskey);
else all('[data-no-passkeys]').forEach((note) => (note.hidden = false));
all('[data-address]').forEach(replaceAnswer);
addEventListener('hashchange', unfold);
// A browser may keep a page and show it again. A new key is shown once.
addEventListener('pagehide', () => {
  all('[data-key]').forEach((input) => (input.value = ''));
  all('[data-secret]').forEach((part) => (part.textContent = 'This key is no longer shown.'));
});
unfold();
