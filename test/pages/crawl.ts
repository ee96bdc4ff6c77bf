import assert from 'node:assert/strict';
import type { Element } from '@xmldom/xmldom';
import type { Visitor } from '../support/http/visitor.js';
import { around, readPage, textOf, within, type ReadPage } from '../support/pages/page.js';
import type { Reply } from '../support/request.js';
import { nextPageOf } from './page-html.js';

const BROWSER = { accept: 'text/html' };

/** An answer with a page, however it was asked for. */
export interface Seen {
  readonly path: string;
  readonly reply: Reply;
}

/** Values that no text, date or address has. */
const WRONG = [' ', 'x'.repeat(2_000)];

/** Inputs that people type into. */
const isTyped = (input: Element): boolean =>
  /^(?:|text|search|date|email|password|url)$/.test(input.getAttribute('type') ?? '');

const KEY_PREFIX = /svc_\w{8}/;

const isSelected = (option: Element): boolean => option.hasAttribute('selected');

/** The parser gives an attribute without a value its own name as one. */
function attribute(element: Element, name: string): string {
  const value = element.getAttribute(name) ?? '';
  return value === name ? '' : value;
}

/**
 * Opens pages as a reader does: each path, its lists by each of their filters and to their last pages, and its forms
 * with wrong values. That an answer has no fault whatever it is about, the requests see to.
 */
export async function* crawl(visitor: Visitor, paths: readonly string[]): AsyncGenerator<Seen> {
  for (const path of paths) {
    const reply = await visitor.get(path, BROWSER);
    yield { path, reply };
    if (!String(reply.headers['content-type']).startsWith('text/html')) continue;
    yield* crawlList(visitor, path, reply);
    yield* sendWrongForms(visitor, path, readPage(reply.text));
  }
}

/** Where a list can be limited: the name of a control, and a value. */
interface Filter {
  readonly name: string;
  readonly value: string;
  /** What the control shows for the value. */
  readonly label: string;
}

/** Opens a list by each of its filters. Every row must be one that was looked for, on every page. */
async function* crawlList(visitor: Visitor, path: string, reply: Reply): AsyncGenerator<Seen> {
  const all = yield* readList(visitor, path, reply);
  for (const filter of filtersOf(readPage(reply.text), path, [...all.values()].flat())) {
    const address = `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams({ [filter.name]: filter.value })}`;
    const filtered = await visitor.get(address, BROWSER);
    assert.equal(filtered.status, 200, address);
    yield { path: address, reply: filtered };
    const found = yield* readList(visitor, address, filtered, filter);
    const sought = [filter.value, filter.label].map((text) => text.toLowerCase());
    const matches = (row: string): boolean => sought.some((text) => row.toLowerCase().includes(text));
    for (const [caption, rows] of found) {
      // The rows of some lists do not show what they can be limited to, such as a time.
      if (all.get(caption)?.some(matches) !== true) continue;
      assert.deepEqual(
        rows.filter((row) => !matches(row)),
        [],
        `${address}: ${caption}`,
      );
      assert.ok(rows.length > 0, `${address}: nothing in ${caption}`);
    }
  }
}

/** @returns the rows of the tables of a list, by the captions of the tables, on all of its pages */
async function* readList(
  visitor: Visitor,
  path: string,
  first: Reply,
  filter?: Filter,
): AsyncGenerator<Seen, Map<string, string[]>> {
  const rows = new Map<string, string[]>();
  for (let reply = first, address = path; ;) {
    const page = readPage(reply.text);
    if (filter !== undefined) assertShows(page, filter, address);
    for (const table of page.named('table')) {
      const caption = within(table, 'caption').map(textOf).join();
      const body = within(table, 'tbody').flatMap((part) => within(part, 'tr'));
      rows.set(caption, [...(rows.get(caption) ?? []), ...body.map(textOf)]);
    }
    const next = nextPageOf(reply);
    if (next === undefined) return rows;
    const kept = [...parametersOf(path)].filter(([name]) => name !== 'after');
    for (const [name, value] of kept) assert.equal(parametersOf(next).get(name), value, `${next} follows ${address}`);
    address = next;
    reply = await visitor.get(address, BROWSER);
    assert.equal(reply.status, 200, address);
    yield { path: address, reply };
  }
}

function parametersOf(address: string): URLSearchParams {
  return new URL(address, 'http://localhost').searchParams;
}

/** Fails unless the control of a filter has the value that the address has. */
function assertShows(page: ReadPage, { name, value }: Filter, address: string): void {
  const shown = page
    .named('input', 'select')
    .filter((control) => attribute(control, 'name') === name && isFilter(control, address));
  assert.deepEqual(shown.map(valueOf), [value], `${name} of ${address}`);
}

function valueOf(control: Element): string {
  return attribute(
    control.localName === 'select' ? (within(control, 'option').find(isSelected) ?? control) : control,
    'value',
  );
}

/** Whether a control belongs to a form that limits the page. */
function isFilter(control: Element, address: string): boolean {
  const form = around(control, 'form');
  return (
    form !== undefined && attribute(form, 'method') !== 'post' && attribute(form, 'action') === address.split('?')[0]
  );
}

/** @returns the values of the controls of a page: the first and the last option of each, and a word of a row */
function filtersOf(page: ReadPage, path: string, rows: readonly string[]): Filter[] {
  const controls = page
    .named('input', 'select')
    .filter((control) => attribute(control, 'type') !== 'hidden' && isFilter(control, path));
  return controls.flatMap((control) => {
    const name = attribute(control, 'name');
    if (control.localName === 'input') {
      // Ids and prefixes have digits, and names may have no more than one word.
      const words = rows
        .slice(-1)
        .flatMap((row) =>
          row.split(/[\s()]+/).filter((word) => /^svc_\w{8}$|^[\w-]{30,}$|^[A-Z][a-z]{5,}$/.test(word)),
        );
      // Names are found in any case.
      return words
        .slice(0, 1)
        .map((word) => ({ name, value: word.startsWith('svc_') ? word : word.toLowerCase(), label: word }));
    }
    const options = within(control, 'option').filter((option) => attribute(option, 'value') !== '');
    const values = options.map((option) => attribute(option, 'value'));
    // A list may be limited to more keys than its control can offer.
    const isOfKeys = values.some((value) => KEY_PREFIX.test(value));
    const unlisted =
      isOfKeys && rows.flatMap((row) => KEY_PREFIX.exec(row)?.[0] ?? []).find((prefix) => !values.includes(prefix));
    return [
      ...[...new Set([options[0], options.at(-1)])].flatMap((option) =>
        option ? { name, value: attribute(option, 'value'), label: textOf(option) } : [],
      ),
      ...(unlisted ? [{ name, value: unlisted, label: unlisted }] : []),
    ];
  });
}

/** Sends each form with typed fields, all of them wrong. */
async function* sendWrongForms(visitor: Visitor, path: string, page: ReadPage): AsyncGenerator<Seen> {
  for (const form of page.named('form')) {
    const controls = within(form, 'input', 'select', 'textarea');
    if (attribute(form, 'method') !== 'post' || !controls.some(isTyped)) continue;
    for (const wrong of WRONG) {
      const sent = controls
        .filter(
          (control) => !/^(?:checkbox|radio)$/.test(attribute(control, 'type')) || control.hasAttribute('checked'),
        )
        .map((control) => [
          attribute(control, 'name'),
          control.localName === 'input' && isTyped(control) ? wrong : valueOf(control),
        ]);
      const action = attribute(form, 'action') || path;
      const reply = await visitor.post(action, Object.fromEntries(sent) as Record<string, string>);
      yield { path: action, reply };
      if (reply.status === 303) await assertConfirmedOnce(visitor, path, String(reply.headers.location));
    }
  }
}

/** What was done is confirmed on the page that follows, once, and on no page that is opened before. */
async function assertConfirmedOnce(visitor: Visitor, before: string, next: string): Promise<void> {
  const count = async (path: string): Promise<number> => {
    const { elements } = readPage((await visitor.get(path, BROWSER)).text);
    return elements.filter((element) => attribute(element, 'role') === 'status').length;
  };
  const [others, first, again] = [await count(before), await count(next), await count(next)];
  assert.deepEqual([others, first - again], [0, 1], `${before}, then ${next}`);
}
