'use strict';

// Every page works without this script. What needs it has the class "scripted", which the stylesheet hides without it.

/** How long a button reads “Copied”, in milliseconds. */
const COPIED_MS = 2000;

/** How long a form is not sent again, in milliseconds. A person may have stopped the browser while it waited. */
const SENT_MS = 10_000;

/** How long a call from the page may take, in milliseconds. */
const CALL_TIMEOUT_MS = 10_000;

/** How often a page looks for the first request of a key, in milliseconds. Servers save it every ten seconds. */
const LOOK_MS = 3_000;

/** How many times it looks: half an hour. */
const LOOKS = 600;

/** How far a section may stand below the line to which links lead and still be the one in view, in CSS pixels. */
const NEAR_LINE_PX = 8;

/** Browsers round the height of a page and how far it is scrolled, in CSS pixels. */
const ROUNDING_PX = 2;

/** @returns every element that a selector matches, within another or in the page */
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

/** @returns a new element with its content: texts and other elements */
function element(name, className, ...content) {
  const made = Object.assign(document.createElement(name), { className });
  made.append(...content);
  return made;
}

/** Makes a button copy the code beside it. */
function enableCopying(button) {
  const content = [...button.childNodes];
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(button.closest('figure').querySelector('code').textContent);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Select and copy';
    }
    setTimeout(() => button.replaceChildren(...content), COPIED_MS);
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

/** Shows the page light or dark; an empty theme leaves that to the system. */
function applyTheme(theme) {
  document.documentElement.dataset.theme = theme ?? '';
}

/** Makes a list of themes change that of every page, and remembers the choice. */
function rememberTheme(list) {
  list.value = recall('theme') ?? '';
  list.addEventListener('change', () => {
    remember('theme', list.value);
    applyTheme(list.value);
  });
}

/** Shows the alternative of a group that has a value, if one has it. */
function choose(group, value) {
  for (const input of all('input', group)) if (input.value === value) input.checked = true;
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

/**
 * Makes only boxes that scroll a stop of the tab key, with a name. A screen reader would read the name of any other box
 * before the same name of its table.
 */
const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = target;
    const isStop = scrollWidth > clientWidth || scrollHeight > clientHeight;
    target.dataset.name ??= target.ariaLabel;
    target.tabIndex = isStop ? 0 : -1;
    target.role = isStop ? 'group' : null;
    target.ariaLabel = isStop ? target.dataset.name : null;
  }
});

/** Unfolds the target of the address. */
function unfold() {
  let target;
  try {
    target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  } catch {
    // The address has malformed encoding, and so no target.
  }
  for (let fold = target?.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true;
}

/** Marks the link to the section in view, and keeps it in view within a sidebar that scrolls. */
function markPlace(sidebar) {
  const links = new Map(all('a[href^="#"]', sidebar).map((link) => [link.hash.slice(1), link]));
  const places = all('[id]').filter(({ id }) => links.has(id));
  let marked;
  const markLink = (link) => {
    marked?.removeAttribute('aria-current');
    marked = link;
    marked?.setAttribute('aria-current', 'location');
  };
  const mark = () => {
    const link = links.get(currentPlace(places)?.id);
    if (link === marked) return;
    markLink(link);
    if (marked) scrollIntoBox(sidebar, marked);
  };
  addEventListener('scroll', mark, { passive: true });
  addEventListener('hashchange', mark);
  // Measuring here would make the browser lay the page out twice before its first paint. Most pages open at their top.
  markLink(links.get(places[0]?.id));
  requestAnimationFrame(() => setTimeout(mark));
  // On a narrow screen the contents lie over the page until something else is clicked, such as one of their links.
  const contents = sidebar.querySelector('details');
  const narrow = matchMedia('(width < 60rem)');
  contents.addEventListener('toggle', () => marked && scrollIntoBox(contents.lastElementChild, marked));
  addEventListener('click', ({ target }) => {
    if (narrow.matches && !target.closest('.sidebar summary')) contents.open = false;
  });
}

/** @returns the place that a reader is at: the last one at or above the line to which links lead */
function currentPlace(places) {
  const { scrollHeight } = document.documentElement;
  const isAtEnd = scrollY > 0 && scrollY + innerHeight >= scrollHeight - ROUNDING_PX;
  if (isAtEnd) {
    // Places near the end of the page cannot reach the line.
    const target = places.find(({ id }) => `#${id}` === location.hash);
    return target && target.getBoundingClientRect().top >= 0 ? target : places.at(-1);
  }
  const padding = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop);
  const distance = (place) => place.getBoundingClientRect().top - parseFloat(getComputedStyle(place).scrollMarginTop);
  return places.findLast((place) => distance(place) <= padding + NEAR_LINE_PX) ?? places[0];
}

/** Scrolls a box, but never the page, until a part of it is in view. */
function scrollIntoBox(box, part) {
  const view = box.getBoundingClientRect();
  const { top, bottom } = part.getBoundingClientRect();
  if (top < view.top || bottom > view.bottom) box.scrollTop += (top + bottom - view.top - view.bottom) / 2;
}

/** Scrolls a row, but never the page, until a part of it is in its middle. */
function scrollIntoRow(row, part) {
  row.scrollLeft += part.getBoundingClientRect().left - row.getBoundingClientRect().left - row.clientWidth / 3;
}

/** The search in the header; operators have none. */
const searchField = document.querySelector('.site-search .input');

/** Leads Ctrl+K, or ⌘K, to the search. */
function search(event) {
  if (event.key?.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || searchField === null) return;
  event.preventDefault();
  // On a narrow screen the field is on a page of its own.
  if (!searchField.checkVisibility()) return searchField.form.requestSubmit();
  searchField.focus();
  searchField.select();
}

/** As the server recognizes one in a search. */
const HOLDS_KEY = /svc_[0-9a-z]{8}_/i;

/** Replaces the results of a search while the next one is typed. Where that fails, the form can still be sent. */
function searchWhileTyping(parts) {
  let latest;
  searchField.addEventListener('input', async () => {
    latest?.abort();
    const { signal } = (latest = new AbortController());
    const { value } = searchField;
    // A key that was pasted stays in the field.
    const address = HOLDS_KEY.test(value) ? '?key-refused' : `?${new URLSearchParams({ q: value })}`;
    try {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]);
      const response = await fetch(address, { signal: bounded });
      const found = all('[data-results]', new DOMParser().parseFromString(await response.text(), 'text/html'));
      parts.forEach((part, index) => part.replaceChildren(...found[index].childNodes));
      history.replaceState(history.state, '', response.url);
    } catch {
      if (signal.aborted) return;
      for (const part of parts) part.replaceChildren();
      parts[0].textContent = 'Press Enter to search.';
    }
  });
}

/** @returns the request that a form describes, without its key */
function readRequest(form) {
  const headers = {};
  const url = new URL(location.origin);
  let path = form.dataset.try;
  for (const { value, dataset } of all('[data-parameter]', form)) {
    if (value === '') continue;
    if (dataset.in === 'path') path = path.replace(`{${dataset.parameter}}`, encodeURIComponent(value));
    else if (dataset.in === 'query') url.searchParams.set(dataset.parameter, value);
    else headers[dataset.parameter] = value;
  }
  url.pathname = path;
  return { url: String(url), headers };
}

/** Makes the samples beside a form call what the form describes. No sample ever contains the key. */
function keepSamples(form, key) {
  const codes = all('[data-remember="language"] code', form.closest('.operation-code'));
  let shown = new URL(form.dataset.url);
  const show = () => {
    const { url } = readRequest(form);
    // Quotes and exclamation marks mean something in the samples' languages.
    const next = new URL(url.replace(/['!]/g, (mark) => `%${mark.charCodeAt(0).toString(16)}`));
    const text = next.pathname + next.search;
    if (key.value !== '' && decodeURIComponent(text).includes(key.value.trim())) return;
    for (const code of codes) {
      const nodes = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
      while (nodes.nextNode()) {
        const { currentNode: node } = nodes;
        node.data = node.data.replaceAll(shown.href, shown.origin + text);
      }
    }
    shown = new URL(shown.origin + text);
  };
  form.addEventListener('input', show);
  form.addEventListener('reset', () => setTimeout(show));
  // The browser may have kept what was typed.
  show();
}

/** Makes a form call an operation. The key exists only in the fields of the page. */
function enableTrying(form) {
  const key = form.querySelector('[data-key]');
  const status = form.querySelector('[data-try-status]');
  const answer = form.querySelector('[data-try-answer]');
  let call;
  for (const input of all('[data-parameter]', form)) {
    // A link may name what to look up.
    const value = new URLSearchParams(location.search).get(input.dataset.parameter);
    if (value === null) continue;
    input.value = value;
    form.closest('details').open = true;
  }
  key.addEventListener('input', () => {
    // A whole header field may have been pasted.
    key.value = key.value.replace(/^\s*(?:Authorization:\s*)?Bearer\s+/i, '');
    for (const other of all('[data-key]')) other.value = key.value;
  });
  keepSamples(form, key);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const { url, headers } = readRequest(form);
    // Only the last call is shown.
    call?.abort();
    const current = new AbortController();
    call = current;
    const timer = setTimeout(() => current.abort('late'), CALL_TIMEOUT_MS);
    answer.hidden = true;
    status.replaceChildren(element('p', 'muted', 'Waiting for the response…'));
    const from = performance.now();
    try {
      const response = await fetch(url, {
        headers: { ...headers, Authorization: `Bearer ${key.value.trim()}` },
        cache: 'no-store',
        credentials: 'omit',
        referrerPolicy: 'no-referrer',
        signal: current.signal,
      });
      const body = await response.text();
      if (call === current) showAnswer(status, answer, response, body, performance.now() - from);
    } catch {
      if (call === current) status.replaceChildren(element('p', 'notice tone-danger', describeFailure(current.signal)));
    } finally {
      clearTimeout(timer);
    }
  });
}

function describeFailure({ reason }) {
  if (reason === 'late') return `No response within ${CALL_TIMEOUT_MS / 1000} seconds. Try again in a moment.`;
  if (!navigator.onLine) return 'You are offline. Connect to the internet, then send the request again.';
  return 'The service did not answer. It may be down: see its status page. Otherwise check your connection.';
}

/** Shows a response: its status and what it means, its body and its header fields. */
function showAnswer(status, answer, response, text, ms) {
  const { status: code, ok, headers } = response;
  const bytes = new Blob([text]).size;
  const size = bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`;
  const tone = ok || code === 304 ? 'ok' : 'danger';
  const badge = element('span', `badge tone-${tone}`, `${code} ${response.statusText}`.trim());
  const facts = [`${Math.round(ms)} ms`, size].map((fact) => element('span', '', fact));
  status.replaceChildren(element('p', 'cluster', badge, ...facts));
  const isJson = /\bjson\b/.test(headers.get('Content-Type') ?? '');
  const value = isJson ? parseJson(text) : undefined;
  if (!ok && value?.detail !== undefined) {
    status.append(element('p', 'notice tone-danger', element('strong', '', `${value.title}. `), value.detail));
  } else if (code === 304) {
    status.append(element('p', 'muted', 'Unchanged since the response with this ETag, so there is no body.'));
  } else if (!ok && value === undefined) {
    status.append(element('p', 'notice tone-danger', 'This response came from a proxy, not from the API.'));
  }
  const body = answer.querySelector('code');
  body.replaceChildren(...(value === undefined ? [text] : highlightJson(JSON.stringify(value, undefined, 2))));
  answer.querySelector('figure').hidden = text === '';
  const fields = [...headers];
  answer.querySelector('[data-try-count]').textContent = `Response headers (${fields.length})`;
  answer
    .querySelector('dl')
    .replaceChildren(...fields.flatMap(([field, content]) => [element('dt', '', field), element('dd', '', content)]));
  answer.hidden = false;
}

/** @returns the value of a JSON text, or undefined for another text */
function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @returns JSON as nodes, with the classes of the samples */
function highlightJson(text) {
  const tokens = /("(?:[^"\\]|\\.)*")(?=(:)?)|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g;
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(tokens)) {
    const [token, string, colon] = match;
    const kind = colon ? 't' : string ? 's' : /^[a-z]/.test(token) ? 'k' : 'n';
    nodes.push(text.slice(end, match.index), element('span', kind, token));
    end = match.index + token.length;
  }
  return [...nodes, text.slice(end)];
}

/** Sends a form once: after a double click, the browser would show the response to the second one, which has no key. */
function sendOnce(form) {
  let isSent = false;
  form.addEventListener('submit', (event) => {
    if (isSent) return event.preventDefault();
    isSent = true;
    setTimeout(() => (isSent = false), SENT_MS);
  });
  addEventListener('pageshow', () => (isSent = false));
}

/** Marks the button of a form that was sent: without Redis, a change of a key takes seconds. */
function showProgress(form) {
  form.addEventListener('submit', ({ submitter }) => submitter?.setAttribute('aria-busy', 'true'));
  addEventListener('pageshow', () => all('[aria-busy]', form).forEach((button) => button.removeAttribute('aria-busy')));
}

/** Replaces a note by what it waits for, once there is something. A page that nobody sees does not look. */
async function awaitText(note) {
  for (let look = 0; look < LOOKS; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    if (document.hidden) continue;
    const response = await fetch(note.dataset.wait, { signal: AbortSignal.timeout(CALL_TIMEOUT_MS) }).catch(() => null);
    // The session has ended.
    if (response?.redirected) return;
    if (response?.status !== 200) continue;
    note.textContent = await response.text();
    note.className = 'notice tone-ok';
    return;
  }
}

/** Makes a choice other than a date keep the date from being sent, which it would stop. */
function disableDate(list) {
  const date = list.form.elements.date;
  list.addEventListener('change', () => (date.disabled = list.value !== 'date'));
}

/** Makes a form open the browser's dialog for passkeys, and sends what it returns as a form, whose answer is a page. */
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
        // With its fields, the form can come back as it was filled in.
        body: new URLSearchParams(new FormData(form)),
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

/** Shows the exact time beside a relative one that is touched, where nothing can hover; and hides it again. */
function showExactTime(time) {
  time.addEventListener('click', () => time.classList.toggle('exact'));
}

/** Puts a page that can be loaded again into the history, in place of the answer to a form. */
function replaceAnswer({ dataset: { address } }) {
  history.replaceState(history.state, '', address);
}

applyTheme(recall('theme'));
all('[data-theme-choice]').forEach(rememberTheme);
// Browsers offer the clipboard on https and on loopback only.
all('[data-copy]').forEach(navigator.clipboard ? enableCopying : (button) => (button.hidden = true));
all('[data-remember]').forEach(rememberChoice);
all('pre[tabindex], .table-scroll').forEach((box) => sizes.observe(box));
const results = all('[data-results]');
if (results.length > 0) searchWhileTyping(results);
all('[data-try]').forEach(enableTrying);
all('.settings-nav [aria-current]').forEach((tab) => scrollIntoRow(tab.closest('ul'), tab));
all('.sidebar').forEach(markPlace);
all('[data-once]').forEach(sendOnce);
all('form[method="post"]:not([data-passkey])').forEach(showProgress);
all('time[title]').forEach(showExactTime);
all('[data-wait]').forEach(awaitText);
all('select[name="lifetime"]').forEach(disableDate);
if (window.PublicKeyCredential?.parseCreationOptionsFromJSON) all('[data-passkey]').forEach(enablePasskey);
else all('[data-no-passkeys]').forEach((note) => (note.hidden = false));
all('[data-address]').forEach(replaceAnswer);
addEventListener('hashchange', unfold);
addEventListener('keydown', search);
// A browser may keep a page and show it again. A new key is shown once.
addEventListener('pagehide', () => {
  all('[data-key]').forEach((input) => (input.value = ''));
  all('[data-secret]').forEach((part) => (part.textContent = 'This key is no longer shown.'));
});
unfold();
