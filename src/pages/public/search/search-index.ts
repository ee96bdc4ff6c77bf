import { STATUS_CODES } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { ERROR_CODES } from '../../../errors.js';
import type { Guide } from '../../parts/guides/guide-pages.js';
import { GUIDES_PATH } from '../guides/guides.js';
import { errorId } from '../../parts/content/heading.js';
import { readSections } from '../../parts/content/markdown.js';
import { chaptersOf, readErrorAdvice } from '../reference/chapters.js';
import { fieldId, headerId, inWords, parameterId, responseId, schemaId, securityId } from '../reference/anchors.js';
import { fieldsOf, headerNames, operationsOf, resolve, statusesOf, type Contract } from '../reference/contract.js';

/** Something that the search finds. */
export interface Entry {
  /** The heading of its results. */
  readonly group: string;
  readonly name: string;
  /** Other names that find it. */
  readonly aliases?: readonly string[];
  /** Its kind, what it belongs to, or its status. */
  readonly context: string;
  /** Where it is described; the first of its places if it has several. */
  readonly address: string;
  /** The operations or schemas that have it, for a parameter or a field. */
  readonly places?: readonly Place[];
  /** In plain text. */
  readonly text: string;
}

/** Where one of several that are described in the same words stands. */
interface Place {
  readonly label: string;
  readonly address: string;
}

/** Other names that people use for the subject of a heading or an operation. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  Keys: ['authentication', 'authorization', 'API key', 'token', 'bearer', 'CORS', 'browser'],
  'Following the changes': ['pagination', 'paging', 'cursor', 'sync', 'webhook', 'webhooks'],
  'The loop': ['poll', 'polling', 'poll interval', 'how often to poll'],
  'Cache responses': ['cache', 'caching', 'conditional request'],
  Compression: ['compression', 'gzip', 'brotli'],
  'Stay within your limits': ['backoff', 'back off', 'retry', 'retries', 'throttling'],
  'Rate limits': ['limit', 'limits', 'quota', 'quotas', 'throttling'],
  Versions: ['changelog', 'release notes', 'versioning', 'deprecation', 'breaking changes'],
  Reference: ['licence', 'license', 'OpenAPI'],
  'Rolling a key': ['rotate a key', 'rotate keys', 'rotation', 'replace a key', 'downtime'],
  'Revoking a key': ['delete a key', 'remove a key', 'disable a key'],
  Passkeys: ['2FA', 'MFA', 'two-factor authentication', 'multi-factor', 'WebAuthn'],
  'Request errors': ['failed requests', 'request id', 'request log', 'request not found'],
  getTitle: ['search titles by name', 'find a title'],
  'Generate an SDK': ['SDK', 'client library', 'swagger', 'code generator'],
};

/** Pages that are neither in the reference nor in a guide. */
const OTHER_ENTRIES: readonly Entry[] = [
  {
    group: 'Basics',
    name: 'Status',
    context: 'Page',
    aliases: ['uptime', 'outage', 'incident', 'availability', 'down'],
    address: '/status',
    text: 'Whether the service works at the moment.',
  },
];

/** Parts of the landing page. They are found by the questions of somebody who does not have a key yet. */
const LANDING_ENTRIES: readonly Entry[] = [
  {
    name: 'Get a key',
    aliases: ['get an API key', 'create a key', 'new key', 'sign up', 'register', 'access'],
    address: '/#key',
    text: 'Every call needs an API key. How to get access, create a key and put it into your environment.',
  },
  {
    name: 'Plans and limits',
    aliases: ['plans', 'price', 'prices', 'pricing', 'cost', 'costs', 'free', 'commercial use'],
    address: '/#plans',
    text: 'Each plan with its requests per minute and per day.',
  },
  {
    name: 'Make your first call',
    aliases: ['sample', 'samples', 'example', 'examples', 'quickstart', 'getting started', 'curl', 'hello world'],
    address: '/#first-call',
    text: 'A whole program in each language: it requests the totals of the catalogue.',
  },
].map((entry) => ({ ...entry, group: 'Basics', context: 'Home' }));

/** @returns an entry for each part of the contract and of the guides that has an address */
export async function listEntries(contract: Contract, guides: readonly Guide[]): Promise<readonly Entry[]> {
  const entries = fold([
    ...listOperations(contract),
    ...listErrors(guides),
    ...LANDING_ENTRIES,
    ...OTHER_ENTRIES,
    ...listComponents(contract),
    ...listChapters(contract, guides),
  ]);
  for (const { name, title, description, text } of guides) {
    // Between guides, other requests get their turn.
    await setImmediate();
    const address = `${GUIDES_PATH}/${name}`;
    const aliases = ALIASES[title] ?? [];
    const page = { group: 'Guides', name: title, aliases, context: 'Guide', address, text: description };
    entries.push(...listSections(text, page));
  }
  return entries;
}

/** @returns the entries, those of the same name, kind and text as one with the places of all */
function fold(entries: readonly Entry[]): Entry[] {
  const folded = new Map<string, Entry>();
  for (const entry of entries) {
    const { group, name, context, text, places = [] } = entry;
    const key = JSON.stringify([group, name, context, text]);
    const first = folded.get(key) ?? entry;
    folded.set(key, first === entry ? entry : { ...first, places: [...(first.places ?? []), ...places] });
  }
  return [...folded.values()];
}

/** @returns an entry for a part of the reference, by its id there and its description in Markdown */
function partOf(
  group: string,
  name: string,
  context: string,
  id: string,
  description = '',
  aliases: readonly string[] = [],
): Entry {
  const text = readSections(description).map((section) => section.text);
  return { group, name, aliases, context, address: `/docs#${id}`, text: text.join(' ') };
}

/** The heading of what operations and schemas consist of. */
const PARTS = 'Parameters and fields';

/** @returns an entry with the operation or schema that it is a part of */
function inPlace(label: string, entry: Entry): Entry {
  return { ...entry, places: [{ label, address: entry.address }] };
}

function listOperations(contract: Contract): Entry[] {
  return operationsOf(contract).flatMap(({ operationId: id, summary, description, method, path, parameters = [] }) => [
    partOf('Operations', summary, `${method} ${path}`, id, description, [id, path, ...(ALIASES[id] ?? [])]),
    ...parameters.map((parameter) => {
      const { name, in: sentIn, description: text } = resolve(contract, parameter).part;
      return inPlace(summary, partOf(PARTS, name, `${sentIn} parameter`, parameterId(id, name), text));
    }),
  ]);
}

function listErrors(guides: readonly Guide[]): Entry[] {
  const advice = readErrorAdvice(guides);
  return Object.entries(ERROR_CODES).map(([code, { status, title }]) => {
    const aliases = [String(status), title, STATUS_CODES[status] ?? ''];
    const entry = partOf('Errors', code, `${status} · ${title}`, errorId(code) ?? '', '', aliases);
    return { ...entry, text: advice.get(code) ?? '' };
  });
}

function listComponents(contract: Contract): Entry[] {
  const { responses, headers, schemas, securitySchemes } = contract.components;
  const names = headerNames(contract);
  // A header field may be described several times, first where it is most common.
  const distinct = new Map(
    Object.keys(headers)
      .toReversed()
      .map((shared) => [names.get(shared) ?? shared, shared]),
  );
  return [
    ...Object.entries(schemas).flatMap(([schema, part]) =>
      fieldsOf(contract, part).map(({ name, field }) => {
        const { description } = resolve(contract, field).part;
        return inPlace(schema, partOf(PARTS, name, 'field', fieldId(schema, name), description));
      }),
    ),
    ...Array.from(distinct, ([name, shared]) =>
      partOf('Response headers', name, 'response header', headerId(shared), headers[shared]?.description),
    ),
    ...Object.entries(responses).map(([name, { description }]) => {
      const statuses = statusesOf(contract, name);
      const context = `response ${statuses.join(', ')}`;
      return partOf('Responses and schemas', inWords(name), context, responseId(name), description, statuses);
    }),
    ...Object.entries(schemas).map(([name, { description }]) =>
      partOf('Responses and schemas', name, 'schema', schemaId(name), description),
    ),
    ...Object.entries(securitySchemes).map(([name, { description }]) =>
      partOf('Basics', name, 'security scheme', securityId(name), description),
    ),
  ];
}

function listChapters(contract: Contract, guides: readonly Guide[]): Entry[] {
  const text = 'Every operation, error and field of the contract, its version and its licence.';
  const { Reference: aliases = [] } = ALIASES;
  return listSections(chaptersOf(contract, guides), {
    ...{ group: 'Basics', name: 'Reference', aliases, context: 'Page', address: '/docs', text },
  });
}

/** @returns an entry for a page of Markdown, and one for each heading on it */
function listSections(markdown: string, page: Entry): Entry[] {
  return readSections(markdown).map(({ heading, text }) => {
    if (heading === undefined) return { ...page, text: `${page.text} ${text}` };
    const { text: name, id } = heading;
    const aliases = ALIASES[name] ?? [];
    return { ...page, name, aliases, context: page.name, address: `${page.address}#${id}`, text };
  });
}
