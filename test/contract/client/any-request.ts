import fc from 'fast-check';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { document, documentsBeside, operationResponses } from '../document/document.js';

type Field = readonly [name: string, value: string];

/** A request to a path of the contract, or of a document beside it, well-formed or not. */
export interface AnyRequest {
  readonly operationId: string;
  readonly method: string;
  /** Path and query, as they are sent. */
  readonly target: string;
  readonly version: string;
  readonly fields: readonly Field[];
  readonly content: string;
}

/** The request's bytes, as text in ISO 8859-1. The server closes the connection after its answer. */
export function bytesOf({ method, target, version, fields, content }: AnyRequest): string {
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} ${version}\r\nConnection: close\r\n${lines.join('')}\r\n${content}`;
}

/** Any byte, as a character of ISO 8859-1. */
const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
const bytes = fc.string({ unit: byte, maxLength: 20 });
/** Bytes without the delimiters of a path and a query. */
const segment = fc.string({ unit: byte.filter((char) => !'/?#'.includes(char)), minLength: 1, maxLength: 20 });
const encoded = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 10 }).map(encodeURIComponent);

// Without CONNECT, whose target is a host.
const method = fc.oneof(
  { weight: 6, arbitrary: fc.constant('GET') },
  { weight: 2, arbitrary: fc.constant('HEAD') },
  { weight: 2, arbitrary: fc.constantFrom('POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND') },
  { weight: 1, arbitrary: fc.constantFrom('BREW', 'get', 'GET\u0000', '') },
);

const version = fc.oneof(
  { weight: 12, arbitrary: fc.constant('HTTP/1.1') },
  { weight: 1, arbitrary: fc.constantFrom('HTTP/1.0', 'HTTP/2.0', 'HTTP/1', 'HTTPS/1.1', '') },
);

const nowish = fc.integer({ min: -40 * 86_400, max: 120 }).map((offset) => String(Date.now() / 1000 + offset));
const since = fc.oneof(
  { weight: 3, arbitrary: nowish },
  fc.double().map(String),
  fc.bigInt().map(String),
  fc.constantFrom('', '1e9', '1.795218005e+09', '%31', '0x1', 'NaN', '1'.repeat(70), 'yesterday'),
  encoded,
);

const parameter = fc
  .oneof(
    fc.tuple(fc.constantFrom('x', 'since', 'api_key', '%ff', '__proto__', ''), fc.oneof(encoded, segment, since)),
    fc.tuple(encoded, encoded),
  )
  .map(([name, value]) => `${name}=${value}`);

/** Parameters of the query beside the required ones. */
const parameters = fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(parameter, { maxLength: 3 }));

const id = fc.oneof(fc.constantFrom('blade-runner-1982', 'no-title'), encoded, segment);

/** A part of a path, plain or with one letter percent-encoded, which is equivalent. */
const spelled = (part: string): fc.Arbitrary<string> =>
  fc.constantFrom(
    part,
    part.replace(/[a-z](?=\W*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  );

/** An operation, its path, and the beginning of its query. */
const place: fc.Arbitrary<readonly [operationId: string, path: string, query: readonly string[]]> = fc
  .constantFrom(
    ...new Map(
      [document, ...documentsBeside]
        .flatMap((each) => operationResponses(each))
        .map(({ operationId, path }) => [operationId, path]),
    ),
  )
  .chain(([operationId, template]) => {
    const parts = template.split(/(\{\w+\})/).map((part) => (part.startsWith('{') ? id : spelled(part)));
    const query = fc.oneof(
      { weight: 6, arbitrary: since.map((value) => [`since=${value}`]) },
      fc.constant<string[]>([]),
    );
    return fc.tuple(
      fc.constant(operationId),
      fc.tuple(...parts).map((filled) => filled.join('')),
      operationId === 'getChanges' ? query : fc.constant<string[]>([]),
    );
  });

const fieldValue = fc.oneof(
  bytes,
  fc.constantFrom('', '*', '"x"', 'gzip', 'br, gzip;q=0.5', 'identity;q=0', '100-continue', 'chunked', 'websocket'),
  fc.constantFrom('0', '2', '-1', '16385', '99999999999999999999', 'Upgrade', 'a\u0001b', '\u0000'),
  fc.integer({ min: 1, max: 17_000 }).map((length) => 'x'.repeat(length)),
);
const fieldName = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('If-None-Match', 'Accept-Encoding', 'X-Request-Id', 'Accept', 'Cookie') },
  { weight: 2, arbitrary: fc.constantFrom('Content-Length', 'Transfer-Encoding', 'Expect', 'Connection', 'Upgrade') },
  { weight: 1, arbitrary: fc.constantFrom('Authorization', 'X-API-Key', 'Host', 'X-Forwarded-For', 'Range') },
  { weight: 1, arbitrary: bytes },
);
const field: fc.Arbitrary<Field> = fc.tuple(fieldName, fieldValue);

/** The header fields that carry a key: a valid, an unknown or a malformed one. */
function credentials(key: string): fc.Arbitrary<readonly Field[]> {
  const bearer = (value: string): Field => ['Authorization', `Bearer ${value}`];
  const unknown = generateApiKey().key;
  return fc.oneof(
    { weight: 8, arbitrary: fc.constant([bearer(key)]) },
    { weight: 2, arbitrary: fc.constant<Field[]>([['X-API-Key', key]]) },
    fc.constantFrom<Field[]>([], [bearer(unknown)], [bearer('nonsense')], [bearer('')]),
    fc.constant<Field[]>([bearer(key), ['X-API-Key', unknown]]),
  );
}

/** Content of the length in `Content-Length`. */
const content = fc.oneof({ weight: 6, arbitrary: fc.constant('') }, fc.constantFrom('{}', 'x'.repeat(16_385)));

/** Any request to a path of the contract, with this key, another one or none. */
export function anyRequest(key: string): fc.Arbitrary<AnyRequest> {
  return fc
    .record({
      place,
      method,
      version,
      parameters,
      credentials: credentials(key),
      hosts: fc.oneof({ weight: 20, arbitrary: fc.constant(['x']) }, fc.constantFrom([], ['x', 'y'])),
      others: fc.array(field, { maxLength: 3 }),
      content,
    })
    .map(({ place: [operationId, path, query], parameters: more, hosts, others, ...request }) => {
      const search = [...query, ...more].join('&');
      return {
        operationId,
        method: request.method,
        target: search === '' ? path : `${path}?${search}`,
        version: request.version,
        fields: [
          ...hosts.map((host) => ['Host', host] as const),
          ...request.credentials,
          ...(request.content === '' ? [] : [['Content-Length', String(request.content.length)] as const]),
          ...others,
        ],
        content: request.content,
      };
    });
}
