import { STATUS_CODES } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { ERROR_CODES } from '../../../errors.js';
import type { Guide } from '../../parts/guides/guide-files.js';
import { GUIDES_PATH } from '../guides/guides.js';
import { errorId } from '../../parts/content/heading.js';
import { readSections, type Heading } from '../../parts/content/markdown.js';
import { fieldId, headerId, inWords, parameterId, responseId, schemaId, securityId } from '../reference/anchors.js';
import {
  fieldsOf,
  headerNames,
  operationsOf,
  resolve,
  statusesOf,
  tagsOf,
  type Contract,
} from '../reference/contract.js';

/** Something that the search finds. */
export interface Entry {
  readonly group:
    | 'Operations'
    | 'Errors'
    | 'Parameters and fields'
    | 'Response headers'
    | 'Responses and schemas'
    | 'Basics'
    | 'Guides';
  readonly name: string;
  /** Other names that find it. */
  readonly aliases?: readonly string[];
  /** What it belongs to, or its status or type. */
  readonly context: string;
  /** Where it is described. */
  readonly address: string;
  /** In plain text. */
  readonly text: string;
}

/** What people search for under other names than those of a heading. */
const HEADING_ALIASES: Readonly<Record<string, readonly string[]>> = {
  Keys: ['authentication', 'authorization', 'API key', 'token', 'bearer'],
  'Following the changes': ['pagination', 'paging', 'cursor', 'polling', 'sync', 'webhook', 'webhooks'],
  Caching: ['cache', 'conditional request'],
  Compression: ['gzip', 'brotli'],
  'Rate limits': ['limit', 'limits', 'quota', 'quotas', 'throttling'],
  Versions: ['changelog', 'release notes', 'versioning', 'deprecation', 'breaking changes'],
  'Rolling a key': ['rotate a key', 'rotate keys', 'rotation'],
};

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
  {
    name: 'llms.txt',
    aliases: ['LLM', 'AI', 'language model', 'markdown'],
    context: 'Overview for language models',
    address: '/llms.txt',
    text: 'The documentation as Markdown, for language models.',
  },
].map((entry) => ({ group: 'Basics', context: 'Home', ...entry }));

/** @returns an entry for each part of the contract and of the guides that has an address */
export async function listEntries(contract: Contract, guides: readonly Guide[]): Promise<readonly Entry[]> {
  const entries = [
    ...listOperations(contract),
    ...listErrors(contract),
    ...LANDING_ENTRIES,
    ...listComponents(contract),
  ];
  for (const guide of guides) {
    // Between guides, other requests get their turn.
    await setImmediate();
    entries.push(...listSections(guide));
  }
  return entries;
}

const plain = (markdown = ''): string =>
  readSections(markdown)
    .map(({ text }) => text)
    .join(' ');

const inReference = (id: string): string => `/docs#${id}`;

function listOperations(contract: Contract): Entry[] {
  return operationsOf(contract).flatMap(({ operationId, summary, description, method, path, parameters = [] }) => [
    {
      group: 'Operations',
      name: summary,
      aliases: [operationId, path],
      context: `${method} ${path}`,
      address: inReference(operationId),
      text: plain(description),
    },
    ...parameters.map((parameter): Entry => {
      const { part } = resolve(contract, parameter);
      return {
        group: 'Parameters and fields',
        name: part.name,
        context: `${part.in} parameter · ${summary}`,
        address: inReference(parameterId(operationId, part.name)),
        text: plain(part.description),
      };
    }),
  ]);
}

/** A row of the table of errors: code, status, title, what to do. */
const ERROR_ROW = /^\| `(\w+)` \|[^|]*\|[^|]*\|([^|]*)\|$/gm;

function listErrors({ tags }: Contract): Entry[] {
  const rows = tags.flatMap(({ description }) => [...description.matchAll(ERROR_ROW)]);
  return rows.flatMap(([, code = '', whatToDo]): Entry[] => {
    const id = errorId(code);
    if (id === undefined) return [];
    const { status, title } = ERROR_CODES[code as keyof typeof ERROR_CODES];
    return [
      {
        group: 'Errors',
        name: code,
        aliases: [String(status), title, STATUS_CODES[status] ?? ''],
        context: `${status} · ${title}`,
        address: inReference(id),
        text: plain(whatToDo),
      },
    ];
  });
}

function listComponents(contract: Contract): Entry[] {
  const { responses, headers, schemas, securitySchemes } = contract.components;
  const names = headerNames(contract);
  const chapters = readSections(
    tagsOf(contract)
      .chapters.map(({ name, description }) => `## ${name}\n\n${description}`)
      .join('\n\n'),
  );
  return [
    ...Object.entries(schemas).flatMap(([schema, part]) =>
      fieldsOf(contract, part).map(({ name, field }): Entry => {
        return {
          group: 'Parameters and fields',
          name,
          context: `field · ${schema}`,
          address: inReference(fieldId(schema, name)),
          text: plain(resolve(contract, field).part.description),
        };
      }),
    ),
    // A header field may be described several times, first where it is most common.
    ...[...new Set(names.values())].flatMap((name): Entry[] => {
      const [shared, header] = Object.entries(headers).find(([each]) => names.get(each) === name) ?? [];
      if (shared === undefined) return [];
      return [
        {
          group: 'Response headers',
          name,
          context: 'response header',
          address: inReference(headerId(shared)),
          text: plain(header?.description),
        },
      ];
    }),
    ...Object.entries(responses).map(([name, { description }]): Entry => {
      const statuses = statusesOf(contract, name);
      return {
        group: 'Responses and schemas',
        name: inWords(name),
        aliases: statuses,
        context: `response ${statuses.join(', ')}`,
        address: inReference(responseId(name)),
        text: plain(description),
      };
    }),
    ...listNamed(schemas, { group: 'Responses and schemas', context: 'schema', idOf: schemaId }),
    ...chapters.flatMap(({ heading, text }): Entry[] =>
      heading === undefined
        ? []
        : [
            {
              group: 'Basics',
              name: heading.text,
              aliases: aliasesOf(heading),
              context: 'Reference',
              address: inReference(heading.id),
              text,
            },
          ],
    ),
    ...listNamed(securitySchemes, { group: 'Basics', context: 'security scheme', idOf: securityId }),
  ];
}

function listNamed(
  parts: Readonly<Record<string, { readonly description?: string }>>,
  { group, context, idOf }: Pick<Entry, 'group' | 'context'> & { readonly idOf: (name: string) => string },
): Entry[] {
  return Object.entries(parts).map(([name, { description }]) => {
    return { group, name, context, address: inReference(idOf(name)), text: plain(description) };
  });
}

function aliasesOf({ text }: Heading): readonly string[] {
  return HEADING_ALIASES[text] ?? [];
}

function listSections({ name, title, description, text: markdown }: Guide): Entry[] {
  const address = `${GUIDES_PATH}/${name}`;
  return readSections(markdown).map(({ heading, text }) =>
    heading === undefined
      ? { group: 'Guides', name: title, context: 'Guide', address, text: `${description} ${text}` }
      : {
          group: 'Guides',
          name: heading.text,
          aliases: aliasesOf(heading),
          context: title,
          address: `${address}#${heading.id}`,
          text,
        },
  );
}
