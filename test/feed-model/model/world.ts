import type { Knex } from 'knex';
import { createDeveloper } from '../../../src/developers/developers.js';
import { createKey } from '../../../src/keys/keys.js';
import { openDatabase } from '../../../src/platform/postgres/database.js';
import { startServer } from '../../support/program.js';
import { createTestDatabase } from '../../support/postgres.js';
import type { FeedAddress } from './follower.js';

/** A catalogue that is written to, and a server process that serves its feed. */
export interface World extends FeedAddress {
  readonly databaseUrl: string;
  readonly db: Knex;
  /** Kills the server process, and starts it again at the same address. */
  killServer(): Promise<void>;
  close(): Promise<void>;
}

/** More than any test asks for. */
const UNLIMITED = 2_000_000_000;

/**
 * @param url - of a migrated database; by default a new one, which is dropped at the end
 * @param settings - of the server, beside its database and its port
 */
export async function createWorld(url?: string, settings: Readonly<Record<string, string>> = {}): Promise<World> {
  const database = url === undefined ? await createTestDatabase() : undefined;
  const databaseUrl = url ?? database?.url ?? '';
  const db = openDatabase({
    address: databaseUrl,
    applicationName: 'model',
    poolSize: 4,
    acquireTimeoutMs: 10_000,
    statementTimeoutMs: 0,
  });
  const key = await unlimitedKey(db);
  let server = await startServer({ ...settings, DATABASE_URL: databaseUrl });
  const { port } = new URL(server.url);
  return {
    url: server.url,
    key,
    databaseUrl,
    db,
    async killServer() {
      await server.stop('SIGKILL');
      server = await startServer({ ...settings, DATABASE_URL: databaseUrl, PORT: port });
    },
    async close() {
      const { code, stderr } = await server.stop();
      await db.destroy();
      await database?.drop();
      if (code !== 0) throw new Error(`the server ended with ${String(code)}: ${stderr}`);
    },
  };
}

async function unlimitedKey(db: Knex): Promise<string> {
  await db('plans').insert({
    id: 'model',
    name: 'Model',
    requests_per_minute: UNLIMITED,
    requests_per_day: UNLIMITED,
    commercial_use: false,
  });
  const { id } = await createDeveloper(db, { projectName: 'Model', attributionRequired: false });
  return (await createKey(db, { developerId: id, planId: 'model' })).key;
}
