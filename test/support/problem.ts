import assert from 'node:assert/strict';
import { ERROR_CODES, type ErrorCode } from '../../src/errors.js';
import type { Reply } from './request.js';

/** What a problem should be, beside what all problems have in common. */
interface ExpectedProblem {
  readonly detail?: string | RegExp;
  readonly type?: string;
  /** Members besides the common ones. */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

/** Holds an answer against the whole problem that it should be: status, headers and every member of the document. */
export function assertProblem(reply: Reply, code: ErrorCode, expected: ExpectedProblem = {}): void {
  // The contract's examples are compared with these.
  const { status, title } = ERROR_CODES[code];
  assert.equal(reply.status, status, reply.text);
  const { type, detail, request_id: requestId, ...rest } = reply.json as Record<string, unknown>;
  assert.deepEqual(rest, { title, status, code, ...expected.members });
  // Of its own origin, as a test of all surfaces checks.
  const { origin } = new URL(String(type));
  assert.equal(type, expected.type ?? `${origin}/docs#error-${code}`);
  assert.ok(typeof detail === 'string' && detail.length > 0, reply.text);
  if (typeof expected.detail === 'string') assert.equal(detail, expected.detail);
  else if (expected.detail !== undefined) assert.match(detail, expected.detail);
  assert.ok(typeof requestId === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(requestId), reply.text);
  assert.equal(reply.headers['x-request-id'], requestId);
  assertHeaders(reply, {
    'content-type': 'application/problem+json',
    'content-length': String(Buffer.byteLength(reply.text)),
    'cache-control': 'no-store',
    etag: undefined,
    ...expected.headers,
  });
}

/** Holds some headers of an answer against what they should be; undefined for one that must not be there. */
export function assertHeaders({ headers }: Reply, expected: Readonly<Record<string, string | undefined>>): void {
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, headers[name]])), expected);
}
