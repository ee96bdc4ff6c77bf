import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DOMParser, type Document, type Element } from '@xmldom/xmldom';
import { load } from 'js-yaml';
import { h, type VNode } from 'preact';
import { EXAMPLE_ORIGIN, withRecentExamples } from '../../../../src/http/probes/recent-examples.js';
import { ERROR_CODES, problemType, type ErrorCode } from '../../../../src/errors.js';
import { renderParts } from '../../../../src/pages/parts/frame/page.js';
import { readGuides } from '../../../../src/pages/public/guides/guides.js';
import { readErrorAdvice } from '../../../../src/pages/public/reference/chapters.js';
import { operationsOf, resolve, type Contract } from '../../../../src/pages/public/reference/contract.js';
import { PACKAGE_ROOT } from '../../../../src/platform/process/package-root.js';
import { ROOT } from '../../../support/guides.js';
import { send } from '../../../support/request.js';
import { serveWithoutDatabase } from '../../site-alone.js';

const contract = load(
  withRecentExamples(readFileSync(new URL('openapi.yaml', ROOT), 'utf8'), Date.now())
    // The address of the site alone.
    .replaceAll(EXAMPLE_ORIGIN, 'http://catalog.example'),
) as Contract;

/** How long other work takes in each turn of a busy process, in milliseconds. */
const BUSY_MS = 150;

/** Keywords whose values are not shown as text. */
const NOT_SHOWN = new Set(['tags', 'operationId', 'required', 'links', 'uniqueItems']);

/** Keywords whose members have names that are shown. */
const NAMING = new Set(['properties', 'headers', 'responses', 'content']);

/** References to these are links. The reference shows all other parts in place. */
const LINKED = ['headers', 'responses', 'schemas'];

/** @returns each paragraph, item and cell of a text without the marks of Markdown */
function piecesOf(markdown: string): string[] {
  return markdown
    .split(/\n{2,}|^\|[ -|]+\|$|\|| ?^- /m)
    .map((piece) => squeeze(piece.replace(/^```\w*|^#+ /gm, '')))
    .filter((piece) => /\w/.test(piece));
}

function squeeze(text: string): string {
  return text.replaceAll('`', '').replace(/\s+/g, ' ').trim();
}

function assertSays(part: Element, where: string, texts: readonly string[]): void {
  const shown = squeeze(part.textContent ?? '');
  for (const text of texts) assert.ok(shown.includes(squeeze(text)), `${where} does not say: ${text}`);
}

/**
 * Fails unless a part of the page shows everything of a part of the contract.
 *
 * @param where - for the message
 * @param keyword - the one that the part of the contract is the value of
 */
function assertShows(part: Element, where: string, node: unknown, keyword = ''): void {
  if (typeof node !== 'object' || node === null) {
    const text = keyword === 'in' ? `in ${String(node)}` : String(node);
    // The parts of an object or an array show what it is.
    if (keyword !== 'type' || !['object', 'array'].includes(text)) assertSays(part, where, piecesOf(text));
  } else if ('$ref' in node && typeof node.$ref === 'string') {
    const [, , kind = '', name = ''] = node.$ref.split('/');
    const { part: own } = resolve<{ description?: string }>(contract, { $ref: node.$ref });
    // The fields of a schema in allOf are shown in place, without its description.
    if (keyword === 'allOf') assertShows(part, where, { ...own, description: '' });
    else if (!LINKED.includes(kind)) assertShows(part, where, own);
    else assert.ok(linksOf(part).includes(`#${kind.slice(0, -1)}-${name}`), `${where} does not lead to ${name}`);
  } else if (keyword === 'examples') {
    for (const example of Object.values(node) as { summary: string; value: unknown }[]) {
      const { summary, value } = resolve(contract, example).part;
      assertSays(part, where, [summary, JSON.stringify(value, undefined, 2)]);
    }
  } else {
    for (const [name, value] of Object.entries(node)) {
      if (NOT_SHOWN.has(name) && !NAMING.has(keyword)) continue;
      if (NAMING.has(keyword)) assertSays(part, where, [name]);
      assertShows(part, `${where} ${name}`, value, Array.isArray(node) ? keyword : name);
    }
  }
}

/** The reference as a browser parses it. */
class ReferencePage {
  readonly #document: Document;

  constructor(html: string) {
    // HTML that is no XML: attributes without a value.
    this.#document = new DOMParser({ onError: () => undefined }).parseFromString(html, 'text/html');
  }

  /** @returns the part with an id */
  part(id: string): Element {
    const part = this.#document.getElementById(id) ?? assert.fail(`no part ${id}`);
    // The id of what is folded stands below its summary, so that a link to it unfolds it.
    return part.parentNode?.nodeName === 'details' ? (part.parentNode as Element) : part;
  }

  /** @returns the section of an operation */
  operation(operationId: string): Element {
    return (this.part(operationId).parentNode?.parentNode?.parentNode ?? assert.fail(operationId)) as Element;
  }
}

function linksOf(part: Element): string[] {
  return Array.from(part.getElementsByTagName('a')).map((link) => link.getAttribute('href') ?? '');
}

/** Fails unless a page shows the whole contract. @param advice - what to do about each error, by its code */
function assertComplete(page: ReferencePage, advice: ReadonlyMap<string, string>): void {
  const { info, openapi, tags, components } = contract;
  assertShows(page.part('main'), 'the page', {
    openapi,
    tags: undefined,
    chapters: tags,
    info: { ...info, license: info.license.name },
  });
  for (const operation of operationsOf(contract)) {
    assertShows(page.operation(operation.operationId), operation.operationId, operation);
  }
  for (const [kind, parts] of Object.entries({ ...components, securitySchemes: {}, parameters: {}, examples: {} })) {
    for (const [name, part] of Object.entries(parts)) {
      assertShows(page.part(`${kind.slice(0, -1)}-${name}`), name, part);
    }
  }
  for (const [name, scheme] of Object.entries(components.securitySchemes)) {
    assertShows(page.part(`security-${name}`), name, scheme);
  }
  for (const [name, { required }] of Object.entries(components.headers)) {
    const flags = Array.from(page.part(`header-${name}`).getElementsByTagName('span'), (span) => span.textContent);
    assert.equal(flags.includes('optional'), required !== true, `${name}: required or not`);
  }
  for (const [code, { status, title }] of Object.entries(ERROR_CODES)) {
    // The type of a problem leads there.
    const [path, id = ''] = problemType(code as ErrorCode, '').split('#');
    assert.equal(path, '/docs');
    assertSays(page.part(id), code, [code, String(status), title]);
    assert.ok(advice.has(code), `calling-the-api does not say what to do about ${code}`);
  }
}

describe('the reference', () => {
  let url: string;
  let html: string;
  let stop: () => void;

  before(async () => {
    const { url: served, server } = await serveWithoutDatabase();
    url = served;
    stop = () => server.close();
    const reply = await send(url, '/docs');
    assert.equal(reply.status, 200);
    html = reply.text;
  });

  after(() => stop());

  it('the reference shows the whole contract, and what to do about each error', async () => {
    assertComplete(new ReferencePage(html), readErrorAdvice(await readGuides(PACKAGE_ROOT)));
  });

  it('a machine so busy that the first rendering outlasts the deadline of a request still serves it', async () => {
    const busy = await serveWithoutDatabase(undefined, 900);
    let isBusy = true;
    const nobodyNotifies = new Int32Array(new SharedArrayBuffer(4));
    const work = (): void => {
      // Blocks the process as a computation would, and leaves the processor to other tests.
      Atomics.wait(nobodyNotifies, 0, 0, BUSY_MS);
      if (isBusy) setImmediate(work);
    };
    busy.server.once('request', work);
    const { status, text } = await send(busy.url, '/docs');
    isBusy = false;
    busy.server.close();
    assert.equal(status, 200, text);
  });

  it('between the parts of a long page, other work gets its turn', async () => {
    const order: string[] = [];
    const part = (name: string): VNode => h(() => (order.push(name), name), {});
    const html = renderParts([part('a'), part('b'), part('c')]);
    const others = (async () => {
      for (let turn = 0; turn < 3; turn += 1) {
        await nextTurn();
        order.push('other');
      }
    })();
    assert.equal(await html, 'abc');
    await others;
    assert.deepEqual(order, ['a', 'other', 'b', 'other', 'c', 'other']);
  });
});
