/**
 * The limit for a service on Koa. For each request it writes a line of pino's log and two metrics of prom-client. Callers
 * are cached in memory: one round trip to Redis confirms the record and charges both quotas. One named statement reads
 * the rest.
 */
import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import Koa from 'koa';
import pg from 'pg';
import pino from 'pino';
import { Counter, Histogram } from 'prom-client';
import { CALLER, CHANGES, PAGE_SIZE, STATS, TITLE, type CallerRow, type StatsRow, type TitleRow } from './queries.js';

/** Charges a minute's and a day's counter, if the version is still the expected one. */
const CHARGE = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return false end
local counts = {}
for i = 2, 3 do
  local count = redis.call('incr', KEYS[i])
  if count == 1 then redis.call('pexpire', KEYS[i], ARGV[i]) end
  counts[#counts + 1] = count
  counts[#counts + 1] = redis.call('pttl', KEYS[i])
end
return counts
`;

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const VERSION = 'koa-peer:version';

type Counts = readonly [minute: number, minuteMs: number, day: number, dayMs: number];

interface Caller extends CallerRow {
  /** The answer of `/me`. */
  readonly me: object;
}

interface Scripted {
  charge(...keysAndArguments: readonly (string | number)[]): Promise<Counts | null>;
}

const { DATABASE_URL, DATABASE_POOL_SIZE, REDIS_URL = '' } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(DATABASE_POOL_SIZE) });
const redis = new Redis(REDIS_URL) as Redis & Scripted;
// The benchmark stops the database and Redis first.
pool.on('error', () => undefined);
redis.on('error', () => undefined);
redis.defineCommand('charge', { lua: CHARGE, numberOfKeys: 3 });
await redis.set(VERSION, '1');

const log = pino(
  { timestamp: pino.stdTimeFunctions.isoTime },
  pino.destination({ dest: 1, sync: false, minLength: 4_096 }),
);
const total = new Counter({ name: 'requests_total', help: 'Requests.', labelNames: ['path', 'status'] });
const duration = new Histogram({ name: 'request_duration_seconds', help: 'Time to the answer.', labelNames: ['path'] });
const callers = new Map<string, Caller>();

const app = new Koa<{ caller: Caller }>();

app.use((ctx, next) => {
  const startedAt = performance.now();
  ctx.res.once('close', () => {
    const milliseconds = performance.now() - startedAt;
    // A label needs few values.
    const path = ctx.path.split('/', 4)[3] ?? 'none';
    total.inc({ path, status: ctx.status });
    duration.observe({ path }, milliseconds / 1000);
    log.info({ method: ctx.method, url: ctx.url, status: ctx.status, duration_ms: milliseconds }, 'request');
  });
  return next();
});

app.use(async (ctx, next) => {
  const caller = await findCaller(ctx.get('authorization').replace(/^Bearer /, ''));
  const counts = caller && (await charge(caller));
  if (!caller || !counts) {
    ctx.status = 401;
    return;
  }
  const { requests_per_minute: perMinute, requests_per_day: perDay } = caller;
  const [minute, minuteMs, day, dayMs] = counts;
  ctx.set('RateLimit-Policy', `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`);
  ctx.set(
    'RateLimit',
    `"minute";r=${perMinute - minute};t=${Math.ceil(minuteMs / 1000)}, "day";r=${perDay - day};t=${Math.ceil(dayMs / 1000)}`,
  );
  if (minute > perMinute || day > perDay) {
    ctx.status = 429;
    return;
  }
  ctx.state.caller = caller;
  await next();
});

app.use(async (ctx) => {
  const [operation, id = ''] = ctx.path.slice('/api/v1/'.length).split('/');
  if (operation === 'me') ctx.body = ctx.state.caller.me;
  if (operation === 'stats') ctx.body = { data: numbersOf((await pool.query<StatsRow>(STATS)).rows[0]) };
  if (operation === 'titles') ctx.body = { data: (await pool.query<TitleRow>({ ...TITLE, values: [id] })).rows[0] };
  if (operation === 'changes') ctx.body = await changesSince(Number(ctx.query.since));
});

async function findCaller(key: string): Promise<Caller | undefined> {
  const hash = createHash('sha256').update(key).digest();
  const name = hash.toString('base64');
  const known = callers.get(name);
  if (known) return known;
  const row = (await pool.query<CallerRow>({ ...CALLER, values: [hash] })).rows[0];
  if (!row) return undefined;
  const { project_name, prefix, attribution_required, plan_id, plan_name, developer_id: _, ...plan } = row;
  const me = {
    data: { project_name, key_prefix: prefix, plan: { id: plan_id, name: plan_name, ...plan }, attribution_required },
  };
  const caller = { ...row, me };
  callers.set(name, caller);
  return caller;
}

function charge({ developer_id: developer, plan_id: plan }: Caller): Promise<Counts | null> {
  const counter = (period: string): string => `koa-peer:${period}:${developer}:${plan}`;
  return redis.charge(VERSION, counter('minute'), counter('day'), '1', MINUTE_MS, DAY_MS);
}

/** PostgreSQL's `bigint` arrives as text. */
function numbersOf(row: StatsRow = {}): object {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value)]));
}

async function changesSince(since: number): Promise<object> {
  const { rows } = await pool.query<TitleRow & { position: number }>({ ...CHANGES, values: [since, PAGE_SIZE + 1] });
  const data = rows.slice(0, PAGE_SIZE);
  const next_since = data.at(-1)?.position ?? since;
  return {
    data: data.map(({ position: _, ...entry }) => entry),
    meta: { has_more: rows.length > PAGE_SIZE, next_since },
  };
}

const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`{"url":"http://127.0.0.1:${(server.address() as AddressInfo).port}"}\n`);
});
process.once('SIGTERM', () => process.exit(0));
