import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import pg from 'pg';

/** The least that PostgreSQL takes as `max_notify_queue_pages`, so that its queue of notifications is full soon. */
export const LEAST_QUEUE_PAGES = 64;

/** The role that fills the queue: one that may only connect. */
export const FILLER = 'guest';

/**
 * Fills PostgreSQL's queue of notifications, as any role can that may connect: one session listens and never reads.
 *
 * @returns ends that session
 */
export async function fillNotificationQueue(db: Knex, databaseUrl: string): Promise<() => Promise<void>> {
  await db.raw(`create role ${FILLER} login password '${FILLER}'`);
  const url = new URL(databaseUrl);
  url.username = url.password = FILLER;
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url.href });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const blocker = await connect();
  await blocker.query('listen anything');
  await blocker.query('begin');
  const filler = await connect();
  const fill = async (): Promise<never> => {
    for (;;) await filler.query("select pg_notify('anything', repeat('x', 7900))");
  };
  await assert.rejects(fill(), { code: '54000' });
  await filler.end();
  return async () => {
    await blocker.end();
    await db.raw(`drop role ${FILLER}`);
  };
}
