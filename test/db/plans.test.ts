import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import pg from 'pg';
import { findSession } from '../../src/accounts/sessions.js';
import { generateToken } from '../../src/accounts/tokens.js';
import { callerLoader } from '../../src/admission/callers.js';
import { readFeed } from '../../src/catalog/feed.js';
import { findTitle } from '../../src/catalog/titles.js';
import { listEvents } from '../../src/events/events.js';
import type { KeyHash } from '../../src/keys/api-key.js';
import { fromRfc3339, toSeconds } from '../../src/platform/time/micros.js';
import { createSyntheticTitles, syntheticId } from '../support/catalog/synthetic-titles.js';
import { connectTo } from '../support/database.js';
import { startService, type Statement, type TestService } from '../support/service.js';

const TITLES = 20_000;
const KEYS = 5_000;

/**
 * A page, the entry before it, one more entry that decides has_more, the row of the counts, and that of the feed start and
 * its identity, twice.
 */
const MOST_ROWS = 205;

/** Tables with few rows, which are read whole. */
const SMALL_TABLES = ['plans', 'catalog_counts', 'catalog_feed'];

const NOTHING = { sorts: false, scanned: [] };

/** A node of a plan, as EXPLAIN (ANALYZE, FORMAT JSON) shows it. Rows are those of one loop, on average. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly PlanNode[];
}

describe('the queries of a request to a large catalogue', () => {
  let service: TestService;
  let client: pg.Client;

  before(async () => {
    service = await startService();
    const { db } = service;
    await createSyntheticTitles(service.databaseUrl, TITLES);
    await db.raw("insert into developers (project_name) select 'D' || i from generate_series(1, :n::integer) i", {
      n: KEYS,
    });
    await db.raw(`
      insert into api_keys (prefix, hash, developer_id, plan_id)
      select 'svc_' || lpad(id::text, 8, '0'), sha256(id::text::bytea), id, 'free' from developers where project_name ~ '^D'`);
    client = new pg.Client({ connectionString: service.databaseUrl });
    await client.connect();
  });

  after(async () => {
    await client.end();
    await service.stop();
  });

  async function stampAt(share: number): Promise<number> {
    const id = syntheticId(Math.floor((TITLES - 1) * share));
    const [stamp = ''] = await service.db('titles').where({ svc_id: id }).pluck<string[]>('updated_at');
    return toSeconds(fromRfc3339(stamp));
  }

  /** Sends a request. @returns the queries that the service sent for it */
  async function sentFor(path: string, status = 200): Promise<Statement[]> {
    const before = service.statements.length;
    assert.equal((await service.get(path)).status, status);
    return service.statements.slice(before);
  }

  /** Runs a query as a prepared statement, as the service does, and returns its plan. */
  async function planOf({ sql, bindings }: Statement, mode: string): Promise<PlanNode> {
    const values = bindings.map((value) => (value === null ? 'null' : pg.escapeLiteral(textOf(value))));
    await client.query(`set plan_cache_mode = ${mode}`);
    await client.query(`prepare query as ${sql}`);
    try {
      const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
        `explain (analyze, format json) execute query ${values.length > 0 ? `(${values.join(', ')})` : ''}`,
      );
      return rows[0]?.['QUERY PLAN'][0].Plan ?? assert.fail();
    } finally {
      await client.query('deallocate query');
    }
  }

  /** Formats a value for PostgreSQL. Ids and bytes need no quotes within an array. */
  function textOf(value: unknown): string {
    if (Array.isArray(value)) return `{${value.map((item) => textOf(item).replace('\\', '\\\\')).join()}}`;
    return Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : (value as string | number).toString();
  }

  function nodesOf(plan: PlanNode): PlanNode[] {
    return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
  }

  /** A lookup of several keys reads a small table once. */
  function keepsSmallTable({ 'Node Type': type, Plans: [child] = [] }: PlanNode): boolean {
    return type === 'Materialize' && SMALL_TABLES.includes(child?.['Relation Name'] ?? '');
  }

  /** The rows of a page become one, after the limit. */
  function gathersPage({ 'Node Type': type, Plans: children = [] }: PlanNode): boolean {
    return type === 'Aggregate' && children.some((child) => /^(?:Limit|Subquery Scan)$/.test(child['Node Type']));
  }

  /** Summarises a plan: the indexes and rows that it reads, sequential scans, and sorts. */
  function summary(plan: PlanNode): { indexes: string[]; rowsRead: number; scanned: string[]; sorts: boolean } {
    const nodes = nodesOf(plan);
    const scans = nodes.filter((node) => node['Relation Name'] !== undefined);
    const rowsRead = scans.map(
      (node) =>
        node['Actual Loops'] *
        (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)),
    );
    return {
      indexes: nodes.flatMap((node) => node['Index Name'] ?? []).sort(),
      rowsRead: rowsRead.reduce((sum, rows) => sum + rows, 0),
      scanned: scans
        .filter((node) => !/^(?:Index (?:Only )?|Bitmap Heap )Scan$/.test(node['Node Type']))
        .flatMap((node) => node['Relation Name'] ?? []),
      sorts: nodes.some(
        (node) =>
          /Sort|Aggregate|Hash|Materialize/.test(node['Node Type']) && !keepsSmallTable(node) && !gathersPage(node),
      ),
    };
  }

  /** Opens one connection, as the service does, and reads by it. @returns the statements of Knex that it has sent */
  async function sentBy(read: (db: Knex) => Promise<unknown>): Promise<Statement[]> {
    const db = connectTo(service.databaseUrl, { poolSize: 1 });
    const sent: Statement[] = [];
    db.on('query', (statement: Statement) => sent.push(statement));
    try {
      await read(db);
      return sent;
    } finally {
      await db.destroy();
    }
  }

  const page = { indexes: ['titles_updated_at_unique'], rowsRead: MOST_ROWS };
  /** The feed start, the counts and the newest entry. */
  const bounds = { ...page, rowsRead: 3 };

  /** The queries of each request after the lookup of its caller: their indexes, and the rows that they read in all. */
  const REQUESTS: readonly {
    readonly what: string;
    readonly path: () => Promise<string> | string;
    readonly status?: number;
    readonly queries: readonly { readonly indexes: readonly string[]; readonly rowsRead: number }[];
  }[] = [
    { what: '/me', path: () => '/api/v1/me', queries: [] },
    { what: '/stats', path: () => '/api/v1/stats', queries: [{ indexes: [], rowsRead: 1 }] },
    {
      what: 'a page from the middle',
      path: async () => `/api/v1/changes?since=${await stampAt(0.5)}`,
      queries: [page],
    },
    {
      what: 'the last page, of 200 entries and no more',
      path: async () => `/api/v1/changes?since=${await stampAt(1 - 200 / TITLES)}`,
      queries: [{ ...page, rowsRead: MOST_ROWS - 1 }],
    },
    {
      what: 'the empty tail',
      path: async () => `/api/v1/changes?since=${await stampAt(1)}`,
      queries: [{ ...page, rowsRead: 4 }],
    },
    {
      what: 'a page of a position that is weeks old',
      path: () => `/api/v1/changes?since=${Math.floor(Date.now() / 1000) - 20 * 86_400}`,
      queries: [bounds, page],
    },
    {
      what: 'a position ahead of the clock',
      path: () => `/api/v1/changes?since=${Math.floor(Date.now() / 1000) + 30}`,
      queries: [{ ...page, rowsRead: 3 }, bounds, { ...page, rowsRead: 4 }],
    },
    {
      what: 'a title',
      path: () => `/api/v1/titles/${syntheticId(12_345)}`,
      queries: [{ indexes: ['titles_pkey'], rowsRead: 1 }],
    },
    {
      what: 'a title that is not there',
      path: () => '/api/v1/titles/synthetic-1-999',
      status: 404,
      queries: [{ indexes: ['titles_pkey'], rowsRead: 0 }],
    },
  ];

  for (const statistics of ['without statistics', 'with statistics'] as const) {
    it(`read only the rows that they need, ${statistics}, by a generic plan and by one for their values`, async () => {
      // Autovacuum may have collected them already.
      if (statistics === 'with statistics') await client.query('analyze');
      for (const { what, path, status, queries } of REQUESTS) {
        for (const mode of ['force_generic_plan', 'force_custom_plan']) {
          const message = `${what}, ${mode}`;
          const [caller = assert.fail(), ...others] = await sentFor(await path(), status);
          const found = [];
          for (const statement of others) found.push(summary(await planOf(statement, mode)));
          assert.deepEqual(
            found.map(({ indexes, rowsRead }) => ({ indexes, rowsRead })),
            queries,
            message,
          );
          const who = summary(await planOf(caller, mode));
          for (const index of ['api_keys_hash_unique', 'developers_pkey'])
            assert.ok(who.indexes.includes(index), message);
          for (const { rowsRead, scanned, sorts } of [who, ...found]) {
            const read = { sorts, scanned: scanned.filter((table) => !SMALL_TABLES.includes(table)) };
            assert.deepEqual(read, NOTHING, message);
            assert.ok(rowsRead <= MOST_ROWS, message);
          }
        }
      }
    });
  }

  it('statements of requests get one plan for all values after a few uses, and other statements one for their values', async () => {
    const hashes = (await service.db('api_keys').limit(20).pluck<Buffer[]>('hash')).map((it) => it.toString('base64'));
    await sentBy(async (db) => {
      const load = callerLoader(db, 1);
      for (const [i, hash] of hashes.entries()) {
        await load(hash as KeyHash);
        await findTitle(db, syntheticId(i));
        await readFeed(db, fromRfc3339('2026-01-01T00:00:00Z'));
        await findSession(db, generateToken().token);
      }
      const { rows } = await db.raw<{ rows: { name: string; custom: number; mode: string }[] }>(
        `select name, custom_plans::integer as custom, current_setting('plan_cache_mode') as mode
           from pg_prepared_statements order by name`,
      );
      // PostgreSQL tries plans for the values five times.
      const expected = ['find-callers', 'find-session', 'find-titles', 'read-page'];
      assert.deepEqual(
        rows,
        expected.map((name) => ({ name, custom: 5, mode: 'auto' })),
      );
    });
  });

  it('lists of events read no more than they show, also of a developer or a key with most of them', async () => {
    await service.db.raw(`
      insert into events (developer_id, kind, actor, key_prefix)
      select case when i % 10 > 0 then 1 else 2 + i % 1000 end, 'revoked', 'operator',
             case when i % 3 > 0 then 'svc_00000001' else 'svc_' || lpad((i % 5000)::text, 8, '0') end
        from generate_series(1, 40000) i`);
    await service.db.raw(`
      insert into api_keys (prefix, hash, developer_id, plan_id, expires_at)
      select 'svc_x' || lpad(i::text, 7, '0'), sha256(('expired ' || i)::bytea), 1 + i % 2, 'free',
             now() - i * interval '1 minute'
        from generate_series(1, 20000) i`);
    await client.query('analyze events, api_keys');
    const [newest = assert.fail()] = await listEvents(service.db, { limit: 1 });
    const after = { ...newest, at: new Date(Date.parse(newest.at) - 86_400_000).toISOString() };
    for (const query of [{}, { developerId: 1 }, { developerId: 77 }, { developerId: 1, keyPrefix: 'svc_00000001' }]) {
      for (const part of [{}, { after }]) {
        const [list = assert.fail()] = await sentBy((db) => listEvents(db, { ...query, ...part, limit: 51 }));
        const scans = nodesOf(await planOf(list, 'auto')).filter((node) => node['Relation Name'] !== undefined);
        const read = scans.map((node) => [
          node['Node Type'],
          node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) <= 200,
        ]);
        assert.ok(read.length > 1, JSON.stringify(scans));
        for (const each of read) assert.deepEqual(each, ['Index Scan', true], JSON.stringify([query, part, scans]));
      }
    }
  });
});
