import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { crc32 } from 'node:zlib';
import { Redis } from 'ioredis';
import type { Caller, Database } from './database.js';
import type { PeerSettings } from './settings.js';

const KEY_FORMAT = /^svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/;
const CHECKSUM_LENGTH = 6;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * Charges one request to both quotas of a plan or to none, and only while the epoch is the expected one.
 *
 * KEYS: the epoch; a counter for each quota. ARGV: the epoch that is expected; then for each quota its limit and its window
 * in milliseconds. Answers what it did, then count and milliseconds left of each quota.
 */
const CHARGE = `
if ARGV[1] ~= '' and redis.call('get', KEYS[1]) ~= ARGV[1] then return {'unmet'} end
local counts, left, refused = {}, {}, false
for i = 1, #KEYS - 1 do
  local window = tonumber(ARGV[2 * i + 1])
  left[i] = redis.call('pttl', KEYS[i + 1])
  -- A clock that was set back must not make a minute last for hours.
  if left[i] > window then
    left[i] = window
    redis.call('pexpire', KEYS[i + 1], window)
  end
  -- Below 0 there is no counter, or one that would never end.
  counts[i] = left[i] > 0 and tonumber(redis.call('get', KEYS[i + 1])) or 0
  if counts[i] >= tonumber(ARGV[2 * i]) then refused = true end
end
for i = 1, refused and 0 or #KEYS - 1 do
  counts[i] = counts[i] + 1
  if left[i] > 0 then
    redis.call('incr', KEYS[i + 1])
  else
    left[i] = tonumber(ARGV[2 * i + 1])
    redis.call('set', KEYS[i + 1], 1, 'px', left[i])
  end
end
return {refused and 'refused' or 'charged', counts[1], left[1], counts[2], left[2]}
`;

/** Failures of one address, counted in a window that begins with the first. */
const COUNT_FAILURE = `
local failures = redis.call('incr', KEYS[1])
if failures == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end
return {failures, redis.call('pttl', KEYS[1])}
`;
export const FAILURES_ALLOWED = 30;
const FAILURE_WINDOW_MS = 60_000;

type ChargeReply = readonly [outcome: string, minute: number, minuteMs: number, day: number, dayMs: number];

interface Scripted {
  charge(...keysAndArguments: readonly (string | number)[]): Promise<ChargeReply>;
  countFailure(key: string, windowMs: number): Promise<[failures: number, msLeft: number]>;
}

/** A valid key: who it is from, where the plan stands, and whether it refuses the request. */
export interface Admission {
  readonly caller: Caller;
  readonly fields: string[];
  /** The quotas that refuse it, and how long to wait. */
  readonly refused: { readonly names: readonly string[]; readonly seconds: number } | undefined;
}

/** Checks keys with a cache that holds as long as the epoch in Redis does, and charges requests, in one round trip. */
export class Admissions {
  readonly #database: Database;
  readonly #redis: Redis & Scripted;
  readonly #epochKey: string;
  #callers = new Map<string, Caller>();
  #epoch = '';

  constructor(database: Database, { redisUrl, epochKey }: PeerSettings) {
    this.#database = database;
    this.#epochKey = epochKey;
    this.#redis = new Redis(redisUrl) as Redis & Scripted;
    // Redis goes away first.
    this.#redis.on('error', () => undefined);
    this.#redis.defineCommand('charge', { lua: CHARGE, numberOfKeys: 3 });
    this.#redis.defineCommand('countFailure', { lua: COUNT_FAILURE, numberOfKeys: 1 });
  }

  /** @returns undefined for a key that does not work */
  async admit(key: string): Promise<Admission | undefined> {
    const digest = hash('sha256', key, 'base64');
    for (;;) {
      const caller = this.#callers.get(digest) ?? (await this.#remember(key, digest));
      if (caller === undefined) return undefined;
      const epoch = this.#epoch;
      const { developerId, planId, perMinute, perDay } = caller;
      const reply = await this.#redis.charge(
        this.#epochKey,
        `{catalog}:count:minute:${developerId}:${planId}`,
        `{catalog}:count:day:${developerId}:${planId}`,
        epoch,
        perMinute,
        MINUTE_MS,
        perDay,
        DAY_MS,
      );
      if (reply[0] !== 'unmet') return toAdmission(caller, reply);
      if (epoch === this.#epoch) this.#callers = new Map();
    }
  }

  /** @returns seconds to wait where too many keys of the address have failed; 0 otherwise */
  async countFailure(address: string): Promise<number> {
    const [failures, msLeft] = await this.#redis.countFailure(`{catalog}:failures:${address}`, FAILURE_WINDOW_MS);
    return failures > FAILURES_ALLOWED ? Math.ceil(msLeft / 1000) : 0;
  }

  /** An unknown key costs one query. A known one is read again after the epoch that it is remembered under. */
  async #remember(key: string, digest: string): Promise<Caller | undefined> {
    const stored = Buffer.from(hash('sha256', key, 'hex'), 'hex');
    if ((await this.#database.findCaller(stored)) === undefined) return undefined;
    const epoch = (await this.#redis.get(this.#epochKey)) ?? '';
    if (epoch !== this.#epoch) {
      this.#callers = new Map();
      this.#epoch = epoch;
    }
    const caller = await this.#database.findCaller(stored);
    if (caller !== undefined) this.#callers.set(digest, caller);
    return caller;
  }
}

function toAdmission(caller: Caller, [outcome, minute, minuteMs, day, dayMs]: ChargeReply): Admission {
  const { perMinute, perDay } = caller;
  const minuteLeft = Math.max(0, Number(perMinute) - minute);
  const dayLeft = Math.max(0, Number(perDay) - day);
  const minuteSeconds = Math.ceil(minuteMs / 1000);
  const daySeconds = Math.ceil(dayMs / 1000);
  const isRefused = outcome === 'refused';
  return {
    caller,
    fields: [
      'RateLimit-Policy',
      `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`,
      'RateLimit',
      `"minute";r=${minuteLeft};t=${minuteSeconds}, "day";r=${dayLeft};t=${daySeconds}`,
    ],
    refused: isRefused
      ? {
          names: [...(minuteLeft === 0 ? ['minute'] : []), ...(dayLeft === 0 ? ['day'] : [])],
          seconds: Math.max(minuteLeft === 0 ? minuteSeconds : 0, dayLeft === 0 ? daySeconds : 0),
        }
      : undefined,
  };
}

/** Whether a text has the form of a key and its checksum is right. */
export function isKey(text: string): boolean {
  if (!KEY_FORMAT.test(text)) return false;
  let rest = crc32(text.slice(0, -CHECKSUM_LENGTH));
  for (let i = text.length - 1; i >= text.length - CHECKSUM_LENGTH; i--) {
    if (BASE62[rest % BASE62.length] !== text[i]) return false;
    rest = Math.floor(rest / BASE62.length);
  }
  return true;
}

/** The address that the one proxy in front has written down last. */
export function addressOf(request: IncomingMessage): string {
  const forwarded = request.headers['x-forwarded-for'];
  const last = typeof forwarded === 'string' ? forwarded.slice(forwarded.lastIndexOf(',') + 1).trim() : '';
  return last === '' ? (request.socket.remoteAddress ?? '') : last;
}
