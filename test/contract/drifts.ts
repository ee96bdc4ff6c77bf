import type { OperationId } from '../../src/contract.js';
import { change, header, MISSING, status, text, value, type Alteration } from './alterations.js';
import { responseSchema } from './document/conformance.js';
import { fieldsOf, schemasWithin } from './document/document.js';
import type { Exchange } from './exchanges.js';

// What could go wrong with the service's answers. The list comes from what clients rely on, not from the contract: when
// the contract loses a constraint, a drift of this list is no longer found.

const REQUEST_ID = header('X-Request-Id', undefined, 'not an id', 'i'.repeat(65));
const VARY = header('Vary', undefined, 'Accept-Encoding');
/** A page has a coding that clients support. */
const COMPRESSED = header('Content-Encoding', 'deflate', '');
const LIMITS = [
  ...header(
    'RateLimit-Policy',
    undefined,
    '60;w=60',
    '"minute";q=60',
    `"minute";q=${'9'.repeat(99)};w=60, "day";q=1;w=86400`,
  ),
  ...header('RateLimit', undefined, 'limit=60, remaining=59', '"minute";r=-1;t=60, "day";r=9999;t=86399'),
];
/** The plan may not be known where the service fails, but what it sends of it is right. */
const NO_LIMITS_OR_RIGHT = LIMITS.filter(({ what }) => !what.endsWith('missing'));
const NEVER_STORED = header('Cache-Control', undefined, 'private, no-cache');
const REVALIDATED = [
  ...header('Cache-Control', undefined, 'no-cache', 'public, max-age=60'),
  ...header('ETag', undefined, 'unquoted', '"two" "words"'),
];
const RETRY_AFTER = header('Retry-After', undefined, '0', '86401', '1.5', 'soon', 'Fri, 20 Nov 2026 23:40:05 GMT');

const MOMENT = [
  '2026-11-20',
  '2026-11-20T23:40:05.123456',
  '2026-13-20T23:40:05.123456Z',
  '2026-11-20T25:40:05.123456Z',
  '',
  1795218005.123456,
];
const NO_TEXT = [MISSING, null, '', 7];
const NO_BOOLEAN = [MISSING, null, 'true', 0];
const NO_COUNT = [MISSING, null, '5', -1, 1.5, 2 ** 53];
const NO_LIMIT = [MISSING, null, '60', 0, 1.5, 2 ** 31];
const NO_SECONDS = [MISSING, null, '1795218005.123456', -1];

const entry = (at: string): Alteration[] => [
  ...value(`${at}/svc_id`, ...NO_TEXT, 'two words', 'x'.repeat(65)),
  ...value(`${at}/media_type`, ...NO_TEXT, 'film', 'Movie'),
  ...value(`${at}/title`, ...NO_TEXT, 'x'.repeat(1001)),
  ...value(`${at}/updated_at`, MISSING, null, ...MOMENT),
  ...value(`${at}/has_bundles`, ...NO_BOOLEAN),
];

/** Drifts of the bodies of successful answers. */
const BODIES: Readonly<Record<OperationId, readonly Alteration[]>> = {
  getStats: ['titles', 'movies', 'series', 'available_in_library', 'people', 'svc_collections'].flatMap((name) =>
    value(`/data/${name}`, ...NO_COUNT),
  ),
  getChanges: [
    ...entry('/data/0'),
    ...value('/data/199/updated_at', MISSING, 'yesterday'),
    change('/data', 'a page of 201', (entries) => [...(entries as unknown[]), (entries as unknown[])[0]]),
    ...value('/data', {}, [[]], ['title-1']),
    ...value('/meta', MISSING, null, []),
    ...value('/meta/has_more', ...NO_BOOLEAN),
    ...value('/meta/next_since', ...NO_SECONDS),
  ],
  getMe: [
    ...value('/data/project_name', ...NO_TEXT, 'x'.repeat(201)),
    ...value('/data/key_prefix', ...NO_TEXT, 'svc_short', `svc_${'x'.repeat(46)}`),
    ...value('/data/plan', MISSING, null, 'free'),
    ...value('/data/plan/id', ...NO_TEXT, 'Free plan'),
    ...value('/data/plan/name', ...NO_TEXT, 'x'.repeat(101)),
    ...value('/data/plan/requests_per_minute', ...NO_LIMIT),
    ...value('/data/plan/requests_per_day', ...NO_LIMIT),
    ...value('/data/plan/commercial_use', ...NO_BOOLEAN),
    ...value('/data/attribution_required', ...NO_BOOLEAN),
  ],
  getTitle: [
    ...entry('/data'),
    ...value('/data/available_in_library', ...NO_BOOLEAN),
    ...value('/data/created_at', MISSING, null, ...MOMENT),
  ],
};

const SUCCESS = [
  status(202),
  status(299),
  ...header('Content-Type', undefined, 'text/html', 'application/json; charset=utf-8', 'application/problem+json'),
  ...text('', '{"data":', '[]', 'null', '<html></html>'),
  ...value('/data', MISSING, null, 'x'),
  ...REQUEST_ID,
  ...VARY,
  ...LIMITS,
];

const NOT_MODIFIED = [
  status(200),
  status(412),
  ...header('Content-Type', 'application/json'),
  ...REQUEST_ID,
  ...VARY,
  ...LIMITS,
  ...REVALIDATED,
];

const PROBLEM = [
  status(200),
  status(418),
  ...header('Content-Type', undefined, 'application/json', 'text/plain', 'application/problem+json; charset=utf-8'),
  ...text('', 'Internal Server Error', '[]', '{"code":'),
  ...value('/type', MISSING, null, 'https://example.com/unheard-of', 5),
  change('/type', 'relative', (type) => String(type).replace(/^https?:\/\/[^/]+/, '')),
  ...value('/title', MISSING, null, 'Oops', 5),
  ...value('/status', MISSING, null, 418, '400', 400.5),
  ...value('/detail', MISSING, null, '', 'x'.repeat(1001), 5),
  ...value('/code', MISSING, null, 'unheard_of', 'not_found', 5),
  ...value('/request_id', MISSING, null, '', 'not an id', 'of-another-request', 5),
  ...REQUEST_ID,
  ...NEVER_STORED,
];

/** Header fields that an answer made before the key is checked cannot have, although others of its status have them. */
const NO_KEY_YET = [
  ...header('Vary', 'Authorization, X-API-Key'),
  ...header('RateLimit-Policy', '"minute";q=60;w=60, "day";q=10000;w=86400'),
  ...header('RateLimit', '"minute";r=59;t=60, "day";r=9999;t=86399'),
];

/** Drifts of problems with one status. Every problem can also have the drifts of PROBLEM. */
const PROBLEMS: Readonly<Record<string, readonly Alteration[]>> = {
  400: LIMITS,
  401: header(
    'WWW-Authenticate',
    undefined,
    'Basic realm="catalog"',
    'Bearer',
    'Bearer realm="catalog", error="invalid_key"',
  ),
  404: LIMITS,
  405: [...header('Allow', undefined, 'GET', 'POST'), ...LIMITS],
  429: [
    ...RETRY_AFTER,
    ...LIMITS,
    ...value('/type', 'about:blank'),
    ...value('/violated-policies', MISSING, null, [], 'minute', [7], ['day', 'day'], ['minute', 'day', 'minute']),
  ],
  500: [],
  503: RETRY_AFTER,
};

/** The deliberate drifts of the response that an exchange of the contract gets. */
export function driftsOf({ operationId, status: documented, code }: Exchange): readonly Alteration[] {
  const fields = fieldsOf(operationId, documented);
  switch (documented) {
    case 200:
      return [
        ...SUCCESS,
        ...BODIES[operationId as OperationId],
        ...(fields.includes('Content-Encoding') ? COMPRESSED : []),
        ...(fields.includes('ETag') ? REVALIDATED : NEVER_STORED),
      ];
    case 304:
      return NOT_MODIFIED;
    case 408:
    case 413:
    case 431:
      return PROBLEM;
    case 500:
      return [...PROBLEM, ...VARY, ...NO_LIMITS_OR_RIGHT];
    default:
      if (code === 'malformed_request') return [...PROBLEM, ...NO_KEY_YET];
      return [
        ...PROBLEM,
        ...VARY,
        ...(PROBLEMS[documented] ?? []),
        ...(code === 'since_out_of_window' ? value('/oldest_since', ...NO_SECONDS) : []),
      ];
  }
}

/** Header fields that are lists may grow, and so may their parameters. */
const LONGER_LISTS = [
  ...header('Vary', 'Authorization, X-API-Key, Accept-Language'),
  ...header('RateLimit-Policy', '"minute";q=60;w=60;pk=:YQ==:, "day";q=10000;w=86400, "month";q=1;w=2592000'),
  ...header('RateLimit', '"minute";r=59;t=60, "day";r=9999;t=86399, "month";r=0;t=1'),
];

/** The JSON pointers of the parts of a response's body that have a type; of a list, its first element. */
function partsOf(exchange: Exchange, isWanted: (type: unknown) => boolean): readonly string[] {
  const parts = [...schemasWithin(responseSchema(exchange), '')].filter(({ schema }) => isWanted(schema.type));
  return [...new Set(parts.map(({ place }) => place.replaceAll('[]', '/0').replaceAll('.', '/')))];
}

/** The places of the values of a response's body. A drift of a whole list is one of its elements. */
export function valuesOf(exchange: Exchange): readonly string[] {
  const values = partsOf(exchange, (type) => type !== undefined && type !== 'object' && type !== 'array');
  return values.map((pointer) => `body${pointer.replace(/\/0$/, '')}`);
}

/** Additions, which the contract allows: none of them is a drift. */
export function harmlessOf(exchange: Exchange): readonly Alteration[] {
  const { status: documented } = exchange;
  const objects = partsOf(exchange, (type) => type === 'object');
  const limits = documented < 400 || documented === 429;
  return [
    ...header('X-Added', 'something'),
    ...(documented === 405 ? header('Allow', 'GET, HEAD, POST') : []),
    ...(limits ? LONGER_LISTS : []),
    ...objects.flatMap((object) => [...value(`${object}/added`, 'something'), ...value(`${object}/nothing`, null)]),
  ];
}
