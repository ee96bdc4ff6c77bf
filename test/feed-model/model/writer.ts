import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { importCatalogue } from '../../../src/catalog/import/index.js';
import { openConnection, type Connection } from '../../../src/platform/postgres/connection.js';
import { isDatabaseUnavailable } from '../../../src/platform/postgres/errors.js';
import { connectTo } from '../../support/database.js';
import { eventually } from '../../support/eventually.js';
import type { Step, Transaction } from './plan.js';

/** How the transactions of all writers ended. */
export interface Tally {
  committed: number;
  rolledBack: number;
  /** Refused by the database because of other writers. */
  conflicted: number;
  /** The connection was lost, so it is unknown whether they were committed. */
  lost: number;
}

export interface WriterOptions {
  readonly name: string;
  readonly databaseUrl: string;
  readonly transactions: readonly Transaction[];
  readonly tally: Tally;
  /** Called before each transaction. */
  readonly before?: (() => Promise<void>) | undefined;
}

/** A serialization failure; and what only a schema without the lock allows: a deadlock, or two importers of an id. */
const CONFLICTS = new Set(['40001', '40P01', '23505']);

/** The statements of steps: $1 are the ids, $2 is the title. */
const STATEMENTS = {
  insert: "insert into titles (svc_id, media_type, title) select unnest($1::text[]), 'movie', $2",
  update: 'update titles set title = $2, has_bundles = not has_bundles where svc_id = any($1)',
  // The writer's own stamps are ignored, so nothing changes.
  touch: `update titles set title = title, updated_at = now() + interval '1 day', created_at = now()
           where svc_id = any($1) and $2 <> ''`,
  upsert: `insert into titles (svc_id, media_type, title) select unnest($1::text[]), 'series', $2
           on conflict (svc_id) do update set title = excluded.title, media_type = excluded.media_type`,
  'insert-or-ignore': `insert into titles (svc_id, media_type, title) select unnest($1::text[]), 'movie', $2
                       on conflict do nothing`,
  people: 'insert into people (svc_id, name) select unnest($1::text[]), $2',
};

const BULK = `insert into titles (svc_id, media_type, title)
  select $1 || '-' || i, 'movie', case when i % 3 = 0 then 'the same' else $2 end from generate_series(1, $3) i
  on conflict (svc_id) do update set title = excluded.title`;

/** Carries out a writer's plan on a connection of its own, which it replaces when it is lost. */
export async function runWriter({ name, databaseUrl, transactions, tally, before }: WriterOptions): Promise<void> {
  let client: Connection | undefined;
  try {
    for (const [number, transaction] of transactions.entries()) {
      await before?.();
      client ??= await eventually(`${name} connects`, () => connect(databaseUrl));
      try {
        tally[await new Session(client, databaseUrl, `${name}-${number}`).run(transaction)] += 1;
      } catch (error) {
        if (isDatabaseUnavailable(client.toOwnError(error))) {
          tally.lost += 1;
          client.end().catch(() => undefined);
          client = undefined;
        } else if (CONFLICTS.has((error as { code?: string }).code ?? '')) {
          tally.conflicted += 1;
          await client.query('rollback').catch(() => undefined);
        } else {
          throw new Error(`${name}, ${JSON.stringify(transaction).slice(0, 300)}: ${String(error)}`, { cause: error });
        }
      }
    }
  } finally {
    await client?.end().catch(() => undefined);
  }
}

function connect(url: string): Promise<Connection> {
  return openConnection({ address: url, applicationName: 'writer', acquireTimeoutMs: 2_000, statementTimeoutMs: 0 });
}

/** One transaction of a writer. */
class Session {
  #names = 0;

  constructor(
    private readonly client: Connection,
    private readonly databaseUrl: string,
    private readonly name: string,
  ) {}

  async run(transaction: Transaction): Promise<'committed' | 'rolledBack'> {
    if (transaction.kind === 'statement') {
      await this.#step(transaction.step);
    } else if (transaction.kind === 'import') {
      await this.#import(this.#ids(transaction));
    } else {
      await this.client.query(`begin isolation level ${transaction.isolation}`);
      for (const step of transaction.steps) await this.#step(step);
      await this.client.query(transaction.end);
      if (transaction.end === 'rollback') return 'rolledBack';
    }
    return 'committed';
  }

  /** A title or an id that no other change has. */
  #newName(): string {
    return `${this.name}-${this.#names++}`;
  }

  #ids({ shared, fresh }: { readonly shared: readonly string[]; readonly fresh: number }): string[] {
    return [...shared, ...Array.from({ length: fresh }, () => this.#newName())];
  }

  async #step(step: Step): Promise<void> {
    const { client } = this;
    switch (step.does) {
      case 'copy': {
        const title = this.#newName();
        const lines = this.#ids(step).map((id) => `${id}\tseries\t${title}\n`);
        await pipeline(lines, client.query(copyFrom('copy titles (svc_id, media_type, title) from stdin')));
        return;
      }
      case 'bulk':
        await client.query(BULK, [step.prefix, this.#newName(), step.rows]);
        return;
      case 'read':
        await client.query('select count(*) from titles');
        return;
      case 'cut':
        await client.query('select pg_terminate_backend(pg_backend_pid())');
        return;
      case 'hold':
        if (step.where === 'server') await client.query('select pg_sleep($1)', [step.ms / 1000]);
        else await delay(step.ms);
        return;
      case 'savepoint':
        await client.query('savepoint s');
        for (const inner of step.steps) await this.#step(inner);
        await client.query(step.keep ? 'release savepoint s' : 'rollback to savepoint s');
        return;
      default:
        await client.query(STATEMENTS[step.does], [this.#ids(step), this.#newName()]);
    }
  }

  async #import(ids: readonly string[]): Promise<void> {
    const db = connectTo(this.databaseUrl, { poolSize: 2 });
    try {
      const title = this.#newName();
      const rows = ids.map((id, index) => `${id},movie,${index % 4 === 0 ? 'the same' : title}`);
      await importCatalogue(db, Readable.from([Buffer.from(['svc_id,media_type,title', ...rows, ''].join('\n'))]), {
        kind: 'titles',
        format: 'csv',
      });
    } finally {
      await db.destroy();
    }
  }
}
