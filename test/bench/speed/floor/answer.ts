import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { addressOf, Admissions, FAILURES_ALLOWED, isKey } from './admission.js';
import { answerFresh, answerPrivate, answerProblem, VARY_BY_CODING, type Response } from './answers.js';
import { Database } from './database.js';
import type { PeerSettings } from './settings.js';

// The floor: what a server written by hand for the measured requests alone has to do, and nothing else. It checks and hashes
// the key, makes one round trip to Redis, and sends one named statement. Its answers are those of the service byte for byte.
// It has no logs, metrics, bounds on waits or validation. It takes the key in one place, and knows no outage and no other
// request.
//
// Three things were tried and left. The automatic pipelining of ioredis gained nothing. JSON made by PostgreSQL took less
// time here for a full page, and so much more there that fewer were served. Pipelined statements on few connections save up
// to a fifth of a short query. One slow query then holds up all others.

const settings = JSON.parse(process.env.PEER ?? '') as PeerSettings;
const database = new Database(settings.databaseUrl, settings.databasePoolSize);
const admissions = new Admissions(database, settings);

const ROOT = '/api/v1/';
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
const TITLE_ID = /^[A-Za-z0-9_-]{1,64}$/;
const SINCE = /^\?since=(\d{10}(?:\.\d{1,6})?)$/;
const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded';

/** Answers one of the measured requests, and 404 to all others. */
export async function answer(request: IncomingMessage, response: Response): Promise<void> {
  const { headers, url = '' } = request;
  const offered = headers['x-request-id'];
  const requestId = typeof offered === 'string' && SANE_REQUEST_ID.test(offered) ? offered : randomUUID();
  const key = headers.authorization?.startsWith('Bearer ') === true ? headers.authorization.slice(7) : '';
  if (!isKey(key)) {
    refuseKey(response, requestId);
    return;
  }
  const admission = await admissions.admit(key);
  if (admission === undefined) {
    const seconds = await admissions.countFailure(addressOf(request));
    if (seconds > 0) refuseAddress(response, requestId, seconds);
    else refuseKey(response, requestId);
    return;
  }
  const { caller, fields, refused } = admission;
  if (refused) {
    const { names, seconds } = refused;
    answerProblem(response, requestId, {
      status: 429,
      title: 'Rate limit exceeded',
      code: 'rate_limit_exceeded',
      detail: `The plan's requests per ${names.join(' and per ')} are used up. Wait ${seconds} s, as Retry-After says, and try again.`,
      type: QUOTA_EXCEEDED,
      members: `,"violated-policies":${JSON.stringify(names)}`,
      fields: [...fields, 'Retry-After', String(seconds)],
    });
    return;
  }
  const path = url.startsWith(ROOT) ? url.slice(ROOT.length) : '';
  if (path === 'me') {
    answerPrivate(response, requestId, fields, caller.me);
    return;
  }
  const body = await read(path);
  if (body === undefined) response.writeHead(404).end();
  else if (path.startsWith('changes')) answerFresh(request, response, requestId, fields, body, VARY_BY_CODING);
  else answerFresh(request, response, requestId, fields, body);
}

function read(path: string): Promise<string | undefined> {
  if (path === 'stats') return database.stats();
  if (path.startsWith('titles/')) {
    const id = path.slice('titles/'.length);
    if (TITLE_ID.test(id)) return database.title(id);
  } else if (path.startsWith('changes')) {
    const since = SINCE.exec(path.slice('changes'.length))?.[1];
    if (since !== undefined) return database.changes(since);
  }
  return Promise.resolve(undefined);
}

function refuseKey(response: Response, requestId: string): void {
  answerProblem(response, requestId, {
    status: 401,
    title: 'API key invalid',
    code: 'invalid_api_key',
    detail: 'The API key is unknown, revoked or expired, or its developer is suspended. Check it, or get a new one.',
    fields: ['WWW-Authenticate', 'Bearer realm="catalog", error="invalid_token"'],
  });
}

function refuseAddress(response: Response, requestId: string, seconds: number): void {
  answerProblem(response, requestId, {
    status: 429,
    title: 'Rate limit exceeded',
    code: 'rate_limit_exceeded',
    detail: `Too many keys from your address have failed. Send a valid key, which is served at once, or wait ${seconds} s, as Retry-After says.`,
    type: QUOTA_EXCEEDED,
    members: ',"violated-policies":["failures"]',
    fields: [
      'Retry-After',
      String(seconds),
      'RateLimit-Policy',
      `"failures";q=${FAILURES_ALLOWED};w=60`,
      'RateLimit',
      `"failures";r=0;t=${seconds}`,
    ],
  });
}
