import pg from 'pg';
import { createTestDatabase } from '../support/postgres.js';
import { count, median, print, printResults } from './measure.js';
import { runCatalog } from './program.js';

const ROUNDS = 5;
const WRITERS = [1, 8] as const;

/** The catalogue's table, and one with the same columns, constraints and indexes but no triggers. */
const TABLES = ['titles', 'plain'] as const;
type Table = (typeof TABLES)[number];

/**
 * Counts commits of one row each, with one and with eight writers. They go by turns into the catalogue and into the
 * same table without triggers.
 *
 * @param seconds - how long to write in all
 */
export async function benchWrites(seconds: number): Promise<void> {
  const database = await createTestDatabase();
  const clients = await Promise.all(
    Array.from({ length: Math.max(...WRITERS) }, async () => {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      return client;
    }),
  );
  try {
    await clients[0]?.query('create table plain (like titles including all)');
    print(`Writing for ${seconds} s …\n`);
    const msEach = (seconds * 1000) / (ROUNDS * WRITERS.length * TABLES.length);
    const rates = { titles: { 1: [], 8: [] }, plain: { 1: [], 8: [] } } as Record<Table, Record<1 | 8, number[]>>;
    for (let round = 0; round < ROUNDS; round++) {
      for (const writers of WRITERS) {
        for (const table of TABLES) {
          rates[table][writers].push(await write(clients.slice(0, writers), table, msEach));
        }
      }
    }
    printResults(
      'Commits of a single row, per second',
      ['the catalogue', 'without triggers', 'price'],
      WRITERS.map((writers) => {
        const [kept, plain] = TABLES.map((table) => median(rates[table][writers]));
        const price = (plain ?? NaN) / (kept ?? NaN);
        return {
          what: writers === 1 ? '1 writer' : `${writers} writers`,
          figures: [count(kept ?? NaN), count(plain ?? NaN), `×${price.toFixed(2)}`],
        };
      }),
    );
    print((await runCatalog(database.url, ['stats', 'verify'])).stdout);
  } finally {
    await Promise.all(clients.map((client) => client.end()));
    await database.drop();
  }
}

let written = 0;

/** @returns commits per second of all writers together */
async function write(clients: readonly pg.Client[], table: Table, ms: number): Promise<number> {
  const start = performance.now();
  const before = written;
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() - start < ms) {
        await client.query({
          name: table,
          text: `insert into ${table} (svc_id, media_type, title) values ($1, 'movie', 'Title')`,
          values: [`bench-${written++}`],
        });
      }
    }),
  );
  return ((written - before) / (performance.now() - start)) * 1000;
}
