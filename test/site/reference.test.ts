import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { DOMParser, type Document, type Element } from '@xmldom/xmldom';
import { load } from 'js-yaml';
import { withRecentExamples } from '../../src/http/probes/recent-examples.js';
import { ERROR_CODES } from '../../src/errors.js';
import {
  operationsOf,
  resolve,
  type Contract,
  type Header,
  type OrReference,
  type PlacedOperation,
  type Response,
  type Schema,
} from '../../src/site/reference/contract.js';
import { ROOT } from '../support/guides.js';
import { send } from '../support/request.js';
import { serveWithoutDatabase } from './site-alone.js';

const contract = load(withRecentExamples(readFileSync(new URL('openapi.yaml', ROOT), 'utf8'), Date.now())) as Contract;

/** Keywords of a schema that are checked by their structure. All others have a value that must be there as text. */
const STRUCTURE = new Set(['description', 'properties', 'required', 'items', 'allOf']);

/** Bound on the size of the reference with its stylesheet and its script, as a multiple of that of the contract in JSON. */
const MOST_TIMES = 3;

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

/** The reference as a browser gets it. */
class ReferencePage {
  readonly #document: Document;

  constructor(html: string) {
    // HTML that is no XML: attributes without a value.
    this.#document = new DOMParser({ onError: () => undefined }).parseFromString(html, 'text/html');
  }

  /** @returns the part with an id */
  part(id: string): Element {
    return this.#document.getElementById(id) ?? assert.fail(`no part ${id}`);
  }

  /** @returns the section of an operation */
  operation(operationId: string): Element {
    return (this.part(operationId).parentNode?.parentNode ?? assert.fail(operationId)) as Element;
  }

  /** @returns the whole content */
  get content(): Element {
    return this.part('main');
  }

  remove(element: Element): void {
    element.parentNode?.removeChild(element);
  }
}

function linksOf(part: Element): string[] {
  return Array.from(part.getElementsByTagName('a')).map((link) => link.getAttribute('href') ?? '');
}

function codeOf(part: Element): (string | null)[] {
  return Array.from(part.getElementsByTagName('code')).map((code) => code.textContent);
}

/** Fails unless a part of the page holds each of these texts. */
function assertSays(part: Element, where: string, texts: readonly string[]): void {
  const said = squeeze(part.textContent ?? '');
  for (const text of texts) assert.ok(said.includes(squeeze(text)), `${where} does not say: ${text}`);
}

function assertSchema(part: Element, where: string, schema: OrReference<Schema>): void {
  if ('$ref' in schema && typeof schema.$ref === 'string') {
    const name = schema.$ref.split('/').at(-1) ?? '';
    assert.ok(linksOf(part).includes(`#schema-${name}`), `${where} does not lead to ${name}`);
    return;
  }
  const own = schema as Schema;
  assertSays(part, where, piecesOf(own.description ?? ''));
  for (const [keyword, value] of Object.entries(own)) {
    if (STRUCTURE.has(keyword)) continue;
    const shown = keyword === 'uniqueItems' ? ['items are unique'] : [value].flat().map(String);
    // What an object is, or an array of things, its parts say.
    if (keyword !== 'type' || !['object', 'array'].includes(String(value)))
      assertSays(part, `${where} ${keyword}`, shown);
  }
  for (const [name, field] of Object.entries(own.properties ?? {})) {
    assert.ok(codeOf(part).includes(name), `${where} has no field ${name}`);
    assertSchema(part, `${where}.${name}`, field);
  }
  if (own.items) assertSchema(part, `${where}[]`, own.items);
  for (const one of own.allOf ?? []) assertSchema(part, where, one);
}

function assertHeader(part: Element, where: string, header: Header): void {
  assertSays(part, where, piecesOf(header.description ?? ''));
  assertSchema(part, where, header.schema);
  if (header.example !== undefined) assertSays(part, where, [String(header.example)]);
  assertSays(part, where, header['x-absent-with'] ?? []);
  const flags = Array.from(part.getElementsByTagName('span')).map((span) => span.textContent);
  assert.equal(flags.includes('optional'), header.required !== true, `${where}: required or not`);
}

function assertResponse(part: Element, where: string, response: Response): void {
  assertSays(part, where, piecesOf(response.description));
  for (const [name, header] of Object.entries(response.headers ?? {})) {
    assertSays(part, where, [name]);
    const { name: shared } = resolve(contract, 'headers', header);
    assert.ok(linksOf(part).includes(`#header-${shared ?? ''}`), `${where} does not lead to the header ${name}`);
  }
  for (const [mediaType, { schema, examples = {} }] of Object.entries(response.content ?? {})) {
    assertSays(part, where, [mediaType]);
    assertSchema(part, where, schema);
    for (const { summary = '', value } of Object.values(examples)) {
      assertSays(part, where, [summary, JSON.stringify(value, undefined, 2)]);
    }
  }
}

function assertOperation(page: ReferencePage, operation: PlacedOperation): void {
  const { operationId, summary, description, method, path, parameters = [], responses } = operation;
  const part = page.operation(operationId);
  assertSays(part, operationId, [summary, method, path, ...piecesOf(description)]);
  for (const parameter of parameters) {
    const { part: own, name: shared } = resolve(contract, 'parameters', parameter);
    assertSays(part, operationId, [own.name, `in ${own.in}`]);
    if (shared === undefined) {
      assertSays(part, operationId, [...piecesOf(own.description ?? ''), String(own.example)]);
      assertSchema(part, `${operationId} ${own.name}`, own.schema);
    } else assert.ok(linksOf(part).includes(`#parameter-${shared}`), `${operationId} does not lead to ${shared}`);
  }
  for (const [status, response] of Object.entries(responses)) {
    const where = `${operationId} ${status}`;
    assertSays(part, where, [status]);
    const { part: own, name: shared } = resolve(contract, 'responses', response);
    if (shared === undefined) assertResponse(part, where, own);
    else assert.ok(linksOf(part).includes(`#response-${shared}`), `${where} does not lead to ${shared}`);
  }
}

/** Holds the page against the whole contract. */
function assertComplete(page: ReferencePage): void {
  const { info, openapi, tags, servers, components } = contract;
  const facts = [info.title, info.version, info.license.name, openapi, ...tags.map(({ name }) => name)];
  const texts = [...servers, ...tags].map(({ description = '' }) => description);
  assertSays(page.content, 'the page', [...facts, ...[info.description, ...texts].flatMap(piecesOf)]);
  for (const operation of operationsOf(contract)) assertOperation(page, operation);
  for (const [name, { description = '', ...facts }] of Object.entries(components.securitySchemes)) {
    assertSays(page.part(`security-${name}`), name, [...piecesOf(description), ...Object.values(facts)]);
  }
  for (const [name, parameter] of Object.entries(components.parameters)) {
    const part = page.part(`parameter-${name}`);
    assertSays(part, name, [parameter.name, `in ${parameter.in}`]);
    assertHeader(part, name, parameter);
  }
  for (const [name, header] of Object.entries(components.headers))
    assertHeader(page.part(`header-${name}`), name, header);
  for (const [name, response] of Object.entries(components.responses)) {
    assertResponse(page.part(`response-${name}`), name, response);
  }
  for (const [name, schema] of Object.entries(components.schemas)) {
    assertSays(page.part(`schema-${name}`), name, [name]);
    assertSchema(page.part(`schema-${name}`), name, schema);
  }
  for (const [code, { status, title }] of Object.entries(ERROR_CODES)) {
    assertSays(page.part(`error-${code}`), code, [code, String(status), title]);
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

  after(() => {
    stop();
  });

  it('shows all that the contract says', () => {
    assertComplete(new ReferencePage(html));
  });

  /** A part that is left out, and what the comparison must say about it. */
  const gaps: readonly (readonly [string, (page: ReferencePage) => Element, RegExp])[] = [
    ['a description', (page) => first(page.part('header-ETag'), 'div'), /ETag does not say/],
    ['a bound', (page) => first(page.part('schema-SvcId'), 'ul'), /SvcId maxLength does not say: 64/],
    ['an example', (page) => first(page.part('response-BadRequest'), 'figure'), /BadRequest does not say/],
    ['a field', (page) => first(first(page.part('schema-Plan'), 'ul'), 'li'), /Plan has no field id/],
    ['an answer', (page) => first(answers(page.operation('getMe')), 'li'), /getMe 400 does not (say|lead)/],
    ['an operation', (page) => page.operation('getTitle'), /no part getTitle/],
    ['an error code', (page) => page.part('error-not_found'), /no part error-not_found/],
    ['a paragraph', (page) => paragraph(page, 'It is made for back ends'), /the page does not say: A read-only/],
  ];
  for (const [what, find, complaint] of gaps) {
    it(`would not pass without ${what}`, () => {
      const page = new ReferencePage(html);
      page.remove(find(page));
      assert.throws(() => assertComplete(page), complaint);
    });
  }

  it('has an id for each link within it, and each id once', () => {
    const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id);
    assert.deepEqual(
      ids.filter((id, index) => ids.indexOf(id) !== index),
      [],
    );
    const targets = [...html.matchAll(/href="#([^"]+)"/g)].map(([, id = '']) => id);
    assert.ok(targets.length > 100);
    assert.deepEqual(
      targets.filter((id) => !ids.includes(id)),
      [],
    );
  });

  it(`takes less than ${MOST_TIMES} times the bytes of the contract with its stylesheet and its script, uncompressed`, async () => {
    const files = [...html.matchAll(/(?:href|src)="(\/assets\/[^"]+\.(?:css|js))"/g)].map(([, path = '']) => path);
    assert.equal(files.length, 2);
    const replies = await Promise.all(['/docs', ...files].map((path) => send(url, path)));
    const bytes = replies.reduce((sum, reply) => sum + reply.bytes.length, 0);
    const most = MOST_TIMES * JSON.stringify(contract).length;
    assert.ok(bytes < most, `${bytes} bytes, at most ${most}`);
  });
});

function first(part: Element, tag: string): Element {
  return part.getElementsByTagName(tag).item(0) ?? assert.fail(`no ${tag}`);
}

/** @returns the list of the answers of an operation, beside that of 200 */
function answers(part: Element): Element {
  const lists = Array.from(part.getElementsByTagName('ul'));
  return lists.find((list) => list.getAttribute('class') === 'answers') ?? assert.fail('no answers');
}

function paragraph(page: ReferencePage, text: string): Element {
  const all = Array.from(page.content.getElementsByTagName('p'));
  return all.find(({ textContent }) => textContent?.includes(text)) ?? assert.fail(`no paragraph: ${text}`);
}
