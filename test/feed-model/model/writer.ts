import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { importCatalogue } from '../../../src/catalog/import/index.js';
import { openConnection, type Connection } from '../../../src/platform/postgres/connection.js';
import { openDatabase } from '../../../src/platform/postgres/database.js';
import { isDatabaseUnavailable } from '../../../src/platform/postgres/errors.js';
import { eventually } from '../../support/eventually.js';
import type { Step, Transaction } from './plan.js';

/** How a writer's transactions ended. */
export interface Tally {
  committed: number;
  rolledBack: number;
  /** Refused by the database for what others did meanwhile. */
  conflicted: number;
  /** The connection was lost; it may have committed or not. */
  lost: number;
}

export interface WriterOptions {
  readonly name: string;
  readonly databaseUrl: string;
  readonly transactions: readonly Transaction[];
  readonly tally: Tally;
  /** Called before each transaction. */
  readonly before?: () => Promise<void>;
}

/** A serialization failure; and what only a schema without the lock allows: a deadlock, and two importers of one new id. */
const CONFLICTS = new Set(['40001', '40P01', '23505']);

/** Thrown where the plan itself cuts the connection. */
class Cut extends Error {}

/** Carries out a writer's plan on a connection of its own, which it opens anew when it is lost. */
export async function runWriter({ name, databaseUrl, transactions, tally, before }: WriterOptions): Promise<void> {
  let client: Connection | undefined;
  try {
    for (const [number, transaction] of transactions.entries()) {
      await before?.();
      client ??= await eventually(`${name} connects`, () => connect(databaseUrl));
      const session = new Session(client, databaseUrl, `${name}.${number}`);
      try {
        tally[await session.run(transaction)] += 1;
      } catch (error) {
        if (error instanceof Cut || isDatabaseUnavailable(client.explain(error))) {
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

class Session {
  #changes = 0;

  constructor(
    private readonly client: Connection,
    private readonly databaseUrl: string,
    private readonly name: string,
  ) {}

  async run(transaction: Transaction): Promise<'committed' | 'rolledBack'> {
    switch (transaction.kind) {
      case 'statement':
        await this.#step(transaction.step);
        return 'committed';
      case 'import':
        await this.#import(transaction.ids);
        return 'committed';
      case 'transaction':
        await this.client.query(`begin isolation level ${transaction.isolation}`);
        for (const step of transaction.steps) await this.#step(step);
        await this.client.query(transaction.end);
        return transaction.end === 'commit' ? 'committed' : 'rolledBack';
    }
  }

  /** A title that no other change gives. */
  #title(): string {
    return `${this.name}/${this.#changes++}`;
  }

  async #step(step: Step): Promise<void> {
    const { client } = this;
    switch (step.does) {
      case 'insert':
        await client.query("insert into titles (svc_id, media_type, title) select unnest($1::text[]), 'movie', $2", [
          step.ids,
          this.#title(),
        ]);
        return;
      case 'copy': {
        const stream = client.query(copyFrom('copy titles (svc_id, media_type, title) from stdin'));
        const title = this.#title();
        await pipeline(Readable.from(step.ids.map((id) => `${id}\tseries\t${title}\n`)), stream);
        return;
      }
      case 'update':
        await client.query('update titles set title = $2, has_bundles = not has_bundles where svc_id = any($1)', [
          step.ids,
          this.#title(),
        ]);
        return;
      case 'touch':
        // What a writer says of the stamps is ignored; what is left is no change.
        await client.query(
          "update titles set title = title, updated_at = now() + interval '1 day', created_at = now() where svc_id = any($1)",
          [step.ids],
        );
        return;
      case 'upsert':
        await client.query(
          `insert into titles (svc_id, media_type, title) select unnest($1::text[]), 'series', $2
           on conflict (svc_id) do update set title = excluded.title, media_type = excluded.media_type`,
          [step.ids, this.#title()],
        );
        return;
      case 'insert-or-ignore':
        await client.query(
          `insert into titles (svc_id, media_type, title) select unnest($1::text[]), 'movie', $2
           on conflict do nothing`,
          [step.ids, this.#title()],
        );
        return;
      case 'bulk':
        await client.query(
          `insert into titles (svc_id, media_type, title)
           select $1 || '-' || i, 'movie', case when i % 3 = 0 then 'the same' else $2 end from generate_series(1, $3) i
           on conflict (svc_id) do update set title = excluded.title`,
          [step.prefix, this.#title(), step.rows],
        );
        return;
      case 'people':
        await client.query('insert into people (svc_id, name) values ($1, $1)', [this.#title().replace(/\W/g, '_')]);
        return;
      case 'read':
        await client.query('select count(*) from titles');
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
      case 'cut':
        await this.#cut(step.how);
        throw new Cut();
    }
  }

  async #cut(how: 'terminate' | 'destroy'): Promise<void> {
    const { client } = this;
    if (how === 'terminate') {
      await client.query('select pg_terminate_backend(pg_backend_pid())').catch(() => undefined);
      return;
    }
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    // It may have been lost before, while the writer held its transaction.
    if (stream.closed) return;
    const closed = once(stream, 'close');
    stream.destroy();
    await closed;
  }

  async #import(ids: readonly string[]): Promise<void> {
    const db = openDatabase({
      address: this.databaseUrl,
      applicationName: 'writer',
      poolSize: 2,
      acquireTimeoutMs: 5_000,
      statementTimeoutMs: 0,
    });
    try {
      const title = this.#title();
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
