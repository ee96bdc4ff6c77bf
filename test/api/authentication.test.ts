import assert from 'node:assert/strict';
import { generateApiKey } from '../../src/keys/api-key.js';
import { eachCase } from '../support/each-case.js';
import { forgeKey } from '../support/keys/forged-key.js';
import { assertProblem } from '../support/problem.js';
import { send, type Reply, type RequestOptions } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

const PATH = '/api/v1/me';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

type Field = readonly [name: string, value: string];

const BEARER: Field = ['Authorization', 'Bearer {key}'];
const FIELD: Field = ['X-API-Key', '{key}'];
const BASIC: Field = ['Authorization', 'Basic dXNlcjpwYXNzd29yZA=='];

/** Header fields and a query, and the key of a request with them. `{key}` is a valid key, `{other}` an unknown one. */
const CREDENTIALS: readonly (readonly [
  fields: readonly Field[],
  query: string,
  outcome: 'a valid key' | 'no key' | 'several keys' | 'an unusable key',
])[] = [
  [[BEARER], '', 'a valid key'],
  [[['AUTHORIZATION', 'bEaReR   {key}']], '', 'a valid key'],
  [[FIELD], '', 'a valid key'],
  [[], '?api_key={key}', 'a valid key'],
  [[], '?x=1&%61pi_key={key}&y=b', 'a valid key'],
  [[BEARER, FIELD], '', 'a valid key'],
  [[BASIC, FIELD], '', 'a valid key'],
  [
    [
      ['Authorization', ''],
      ['X-API-Key', ''],
    ],
    '?api_key={key}',
    'a valid key',
  ],
  [[['Authorization', 'Bearer '], FIELD], '?api_key=', 'a valid key'],
  [[], '', 'no key'],
  [[BASIC], '', 'no key'],
  [[['Authorization', 'X-Bearer {key}']], '', 'no key'],
  [[['Authorization', 'Bearer{key}']], '', 'no key'],
  [[['Authorization', 'Bearer\t{key}']], '', 'no key'],
  [[['X-API-Key', '']], '?api_key', 'no key'],
  [
    [
      ['X-API-Keys', '{key}'],
      ['X-API-Kex', '{key}'],
    ],
    '?API_KEY={key}',
    'no key',
  ],
  [[['X-Other', 'X-API-Key'], BASIC], '?api_key=', 'no key'],
  [[BEARER, ['X-API-Key', '{other}']], '', 'several keys'],
  [[['Authorization', 'Bearer {other}'], FIELD], '', 'several keys'],
  [[FIELD], '?api_key=nonsense', 'several keys'],
  [[BEARER, FIELD], '?api_key={other}', 'several keys'],
  [[BEARER, BEARER], '', 'several keys'],
  [[BEARER, BASIC], '', 'several keys'],
  [[FIELD, FIELD], '', 'several keys'],
  [[], '?api_key={key}&api_key={key}', 'several keys'],
  [[], '?api_key={key}&%61pi_key=', 'several keys'],
  [[['X-API-Key', '{key}, {key}']], '', 'an unusable key'],
  [[['Authorization', 'Bearer {key}, Bearer {key}']], '', 'an unusable key'],
  [[['Authorization', 'Bearer {key} {key}']], '', 'an unusable key'],
];

describe('authentication', () => {
  let service: TestService;
  let key: string;
  /** A well-formed, unknown key. */
  const other = generateApiKey().key;

  before(async () => {
    // More keys fail here than the usual limit allows.
    service = await startService({ failurePolicy: { limit: 1_000, windowSeconds: 60 } });
    key = service.key;
  });

  after(() => service.stop());

  function get(headers: RequestOptions['headers'] = {}, query = ''): Promise<Reply> {
    return send(service.url, PATH + query, { headers });
  }

  function assertMissing(reply: Reply): void {
    assertProblem(reply, 'missing_api_key', {
      // The wording for each scheme has a test of its own.
      detail: /^Send your API key as|^The Authorization field has the scheme Basic\./,
      headers: { 'www-authenticate': 'Bearer realm="catalog"', ...REFUSED },
    });
  }

  function assertInvalid(reply: Reply, detail: string): void {
    assertProblem(reply, 'invalid_api_key', {
      detail,
      headers: { 'www-authenticate': 'Bearer realm="catalog", error="invalid_token"', ...REFUSED },
    });
  }

  /** The fields of every refused request. */
  const REFUSED = {
    vary: 'Authorization, X-API-Key',
    ratelimit: undefined,
    'ratelimit-policy': undefined,
    'set-cookie': undefined,
    'access-control-allow-origin': undefined,
  };
  const UNKNOWN = 'This API key is unknown. Check it, or get a new one.';
  const NO_KEY = 'This is not an API key of this service. Check that you copied the right text.';
  const CUT_OFF = 'The API key is incomplete. Copy the whole key again: it has 51 characters.';
  const MISTYPED = 'The API key is mistyped: its checksum does not match. Copy the whole key again.';
  const QUOTED = 'The API key has quotation marks around it. Send it without them.';
  const PLACEHOLDER = 'This is a placeholder. Replace it, including the angle brackets, with your API key.';
  const VARIABLE = 'This is the name of a variable. It was not replaced by its value: your API key.';
  const CONFLICT =
    'The request contains different API keys, or repeats a header or parameter that carries one. Send one key, once.';

  for (const [outcome, assertOutcome] of [
    ['a valid key', (reply: Reply) => assert.equal(reply.status, 200)],
    ['no key', assertMissing],
    ['several keys', (reply: Reply) => assertInvalid(reply, CONFLICT)],
    ['an unusable key', (reply: Reply) => assertInvalid(reply, NO_KEY)],
  ] as const) {
    it(`a request has ${outcome} by its header fields and its query`, async () => {
      const filled = (text: string): string => text.replaceAll('{key}', key).replaceAll('{other}', other);
      const cases = CREDENTIALS.filter((row) => row[2] === outcome);
      await eachCase(cases, async ([fields, query]) => {
        const headers: Record<string, string[]> = {};
        for (const [name, value] of fields) (headers[name] ??= []).push(filled(value));
        assertOutcome(await get(headers, filled(query)));
      });
    });
  }

  it('text that is not a key, a mistyped one, one cut off and an unknown one are refused, each in its own words', async () => {
    const mistyped = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
    // With a checksum that is right for its letters.
    const otherScheme = forgeKey(`SVC${key.slice('svc'.length, 'svc_12345678'.length)}`);
    const lowerCase = key.toLowerCase();
    for (const [detail, ...keys] of [
      [NO_KEY, 'x', `${key}x`, otherScheme, 'svc__'],
      [CUT_OFF, 'svc_4', key.slice(0, 12), key.slice(0, 13), key.slice(0, -1)],
      [MISTYPED, mistyped, ...(lowerCase === key ? [] : [lowerCase])],
      [UNKNOWN, other],
      [QUOTED, `"${key}"`, `'${key}'`, `${key}"`, '"<KEY>"'],
      [PLACEHOLDER, '<KEY>', `<${key}>`],
      [VARIABLE, '$CATALOG_API_KEY', '${CATALOG_API_KEY}', '%CATALOG_API_KEY%', '{{key}}'],
    ] as const) {
      for (const wrong of keys) assertInvalid(await get({ authorization: `Bearer ${wrong}` }), detail);
    }
  });

  it('a key without the word Bearer, or with another scheme, counts as missing, and the detail explains why', async () => {
    for (const [authorization, detail] of [
      [key, 'The Authorization field lacks the word Bearer. Send "Authorization: Bearer <key>".'],
      [
        `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
        'The Authorization field has the scheme Basic. Send "Authorization: Bearer <key>", without a user name.',
      ],
    ] as const) {
      assertProblem(await get({ authorization }), 'missing_api_key', {
        detail,
        headers: { 'www-authenticate': 'Bearer realm="catalog"', ...REFUSED },
      });
    }
  });

  it('every path of the API requires a key, whatever the method', async () => {
    for (const path of [
      '/api/v1',
      '/api/v1/stats',
      '/api/v1/nope',
      '/api/v1//stats',
      '/api/v1/changes',
      '/api/v1/stats?x=%zz',
      '/api/%76%31/stats',
      '/api/%76%31/%73tats?x',
      'http://catalog.example/api/v1/stats',
    ]) {
      for (const method of path === '/api/v1/stats' ? METHODS : ['GET', 'POST', 'OPTIONS']) {
        assertMissing(await send(service.url, path, { method }));
        assertInvalid(await send(service.url, path, { method, headers: { 'x-api-key': other } }), UNKNOWN);
      }
    }
  });

  it('paths outside the API require no key', async () => {
    for (const path of [
      '/api',
      '/api/',
      '/api/v1x',
      '/api/v10/stats',
      '/API/v1/stats',
      '//api/v1/stats',
      '/x/api/v1/stats',
      // An encoded slash or percent sign is not part of a path's structure.
      '/api%2Fv1/stats',
      '/api/v1%2Fstats',
      '/api/%2576%2531/stats',
      '/api/v%C4%B1/stats',
      '/x/%2E%2E/api/v1/stats',
    ]) {
      assertProblem(await send(service.url, path), 'not_found', {
        detail: 'This path does not exist. The API is under /api/v1, its contract at /openapi.yaml.',
        headers: { vary: undefined, 'www-authenticate': undefined },
      });
    }
  });
});
