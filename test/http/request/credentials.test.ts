import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { readCredentials } from '../../../src/http/request/authenticate.js';

/** What a request says about its key, with these header fields, names and values by turns, and this query. */
function credentialsOf(rawHeaders: readonly string[], query = ''): unknown {
  return readCredentials({ rawHeaders } as unknown as IncomingMessage, new URLSearchParams(query));
}

const NONE = { kind: 'none' };
const CONFLICT = { kind: 'conflict' };
const A = { kind: 'key', key: 'a' };

describe('the key of a request', () => {
  for (const [what, fields, query, expected] of [
    ['no key anywhere', [], '', NONE],
    ['a bearer token', ['Authorization', 'Bearer a'], '', A],
    ['a bearer token in other letters', ['AUTHORIZATION', 'bEARER a'], '', A],
    ['a bearer token after several blanks', ['Authorization', 'Bearer   a'], '', A],
    ['a bearer token with a blank within', ['Authorization', 'Bearer a b'], '', { kind: 'key', key: 'a b' }],
    ['a bearer token of several characters', ['Authorization', 'Bearer abc'], '', { kind: 'key', key: 'abc' }],
    ['X-API-Key', ['x-api-key', 'a'], '', A],
    ['X-API-Key after other fields', ['Host', 'h', 'Accept', 'b', 'X-API-KEY', 'a'], '', A],
    ['a parameter of the query', [], 'api_key=a', A],
    ['a parameter among others', [], 'since=1&api_key=a&x=b', A],
    ['a percent-encoded parameter', [], 'api%5Fkey=%61', A],
    ['the same key in all three places', ['Authorization', 'Bearer a', 'X-API-Key', 'a'], 'api_key=a', A],
    ['the same key in both header fields', ['Authorization', 'Bearer a', 'X-API-Key', 'a'], '', A],
    ['the same key in X-API-Key and the query', ['X-API-Key', 'a'], 'api_key=a', A],
    ['an empty X-API-Key beside a key', ['X-API-Key', ''], 'api_key=a', A],
    ['an empty parameter beside a key', ['X-API-Key', 'a'], 'api_key=', A],
    ['an empty bearer token beside a key', ['Authorization', 'Bearer ', 'X-API-Key', 'a'], '', A],
    ['another scheme beside a key', ['Authorization', 'Basic YTpi', 'X-API-Key', 'a'], '', A],
  ] as const) {
    it(`is read: ${what}`, () => {
      assert.deepEqual(credentialsOf(fields, query), expected);
    });
  }

  for (const [what, fields, query] of [
    ['an empty Authorization', ['Authorization', ''], ''],
    ['a scheme alone', ['Authorization', 'Bearer'], ''],
    ['a scheme with blanks alone', ['Authorization', 'Bearer   '], ''],
    ['a token without a blank', ['Authorization', 'Bearera'], ''],
    ['a tab for a blank', ['Authorization', 'Bearer\ta'], ''],
    ['another scheme', ['Authorization', 'Basic YTpi'], ''],
    ['a scheme that ends like Bearer', ['Authorization', 'X-Bearer a'], ''],
    ['a bearer token behind another scheme', ['Authorization', 'Basic Bearer a'], ''],
    ['an empty X-API-Key', ['X-API-Key', ''], ''],
    ['an empty parameter', [], 'api_key='],
    ['a parameter with other letters', [], 'API_KEY=a'],
    ['a field with a longer name', ['X-API-Keys', 'a'], ''],
    ['a field with another name of that length', ['X-API-Kex', 'a'], ''],
    ['a field that holds the name', ['X-Other', 'x-api-key'], ''],
  ] as const) {
    it(`is none: ${what}`, () => {
      assert.deepEqual(credentialsOf(fields, query), NONE);
    });
  }

  for (const [what, fields, query] of [
    ['Authorization and X-API-Key differ', ['Authorization', 'Bearer a', 'X-API-Key', 'b'], ''],
    ['Authorization and the query differ', ['Authorization', 'Bearer a'], 'api_key=b'],
    ['X-API-Key and the query differ', ['X-API-Key', 'a'], 'api_key=b'],
    ['the first of three differs', ['Authorization', 'Bearer b', 'X-API-Key', 'a'], 'api_key=a'],
    ['the second of three differs', ['Authorization', 'Bearer a', 'X-API-Key', 'b'], 'api_key=a'],
    ['the third of three differs', ['Authorization', 'Bearer a', 'X-API-Key', 'a'], 'api_key=b'],
    ['three differ', ['Authorization', 'Bearer a', 'X-API-Key', 'b'], 'api_key=c'],
    ['keys differ in the case of a letter', ['Authorization', 'Bearer a', 'X-API-Key', 'A'], ''],
    ['Authorization twice with one key', ['Authorization', 'Bearer a', 'authorization', 'Bearer a'], ''],
    ['Authorization twice with other schemes', ['Authorization', 'Basic a', 'authorization', 'Basic a'], ''],
    ['X-API-Key twice with one key', ['X-API-Key', 'a', 'X-Api-Key', 'a'], ''],
    ['X-API-Key twice and empty', ['X-API-Key', '', 'X-API-Key', ''], ''],
    ['the parameter twice with one key', [], 'api_key=a&api_key=a'],
    ['the parameter twice and empty', [], 'api_key=&api_key='],
  ] as const) {
    it(`is in conflict, and never guessed: ${what}`, () => {
      assert.deepEqual(credentialsOf(fields, query), CONFLICT);
    });
  }
});
