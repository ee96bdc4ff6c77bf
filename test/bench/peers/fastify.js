/**
 * The peer that a user would write otherwise: Fastify with the obvious code, as its documentation shows. One query finds the
 * key, one reads the answer, `@fastify/rate-limit` counts in Redis. Answers are serialised by schema. It is JavaScript,
 * since `make bench` alone installs Fastify.
 */
import { createHash } from 'node:crypto';
import process from 'node:process';
import rateLimit from '@fastify/rate-limit';
import Fastify from 'fastify';
import { Redis } from 'ioredis';
import pg from 'pg';
import { CALLER, CHANGES, PAGE_SIZE, STATS, TITLE } from './queries.js';
import { CHANGES_ANSWER, ME_ANSWER, STATS_ANSWER, TITLE_ANSWER } from './schemas.js';
import { readSettings } from './settings.js';

const { databaseUrl, databasePoolSize, redisUrl } = readSettings();
const pool = new pg.Pool({ connectionString: databaseUrl, max: databasePoolSize });
// The benchmark stops the database first.
pool.on('error', () => undefined);
const redis = new Redis(redisUrl);
redis.on('error', () => undefined);

const app = Fastify({ trustProxy: true });
app.decorateRequest('caller', undefined);
await app.register(rateLimit, { global: false, redis });

/** The caller of a request that has passed `requireKey`. */
function callerOf({ caller }) {
  if (caller === undefined) throw new Error('The request has not been authenticated');
  return caller;
}

app.addHook('onRequest', async (request, reply) => {
  const key = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  const hash = createHash('sha256')
    .update(key ?? '')
    .digest();
  request.caller = (await pool.query({ ...CALLER, values: [hash] })).rows[0];
  if (request.caller === undefined) {
    return reply.code(401).send({ title: 'API key invalid', status: 401, code: 'invalid_api_key' });
  }
});

const quota = (name, column, timeWindow) => ({
  groupId: name,
  timeWindow,
  max: (request) => callerOf(request)[column],
  keyGenerator: (request) => `${name}:${callerOf(request).developer_id}:${callerOf(request).plan_id}`,
});

app.addHook('preHandler', app.rateLimit(quota('minute', 'requests_per_minute', 60_000)));

// The hook runs once for a request, so the second quota is counted by the plugin's function.
const countDay = app.createRateLimit(quota('day', 'requests_per_day', 86_400_000));
app.addHook('preHandler', async (request, reply) => {
  const day = await countDay(request);
  if (!day.isAllowed && day.isExceeded) {
    return reply.code(429).send({ title: 'Rate limit exceeded', status: 429, code: 'rate_limit_exceeded' });
  }
});

app.get('/api/v1/me', { schema: { response: { 200: ME_ANSWER } } }, (request) => {
  const { project_name, prefix, attribution_required, plan_id, plan_name, ...plan } = callerOf(request);
  return Promise.resolve({
    data: { project_name, key_prefix: prefix, plan: { id: plan_id, name: plan_name, ...plan }, attribution_required },
  });
});

app.get('/api/v1/stats', { schema: { response: { 200: STATS_ANSWER } } }, async () => ({
  data: (await pool.query(STATS)).rows[0],
}));

app.get('/api/v1/titles/:id', { schema: { response: { 200: TITLE_ANSWER } } }, async ({ params }, reply) => {
  const [title] = (await pool.query({ ...TITLE, values: [params.id] })).rows;
  return title === undefined ? reply.code(404).send({ status: 404, code: 'not_found' }) : { data: title };
});

app.get(
  '/api/v1/changes',
  {
    schema: {
      querystring: { type: 'object', required: ['since'], properties: { since: { type: 'number' } } },
      response: { 200: CHANGES_ANSWER },
    },
  },
  async ({ query: { since } }) => {
    const { rows } = await pool.query({ ...CHANGES, values: [since, PAGE_SIZE + 1] });
    const data = rows.slice(0, PAGE_SIZE);
    return { data, meta: { has_more: rows.length > PAGE_SIZE, next_since: data.at(-1)?.position ?? since } };
  },
);

await app.listen({ port: 0, host: '127.0.0.1' });
process.stdout.write(`{"url":"http://127.0.0.1:${app.server.address().port}"}\n`);
process.once('SIGTERM', () => process.exit(0));
