import type { Knex } from 'knex';
import { openTestDatabase } from '../support/database.js';
import { count, median, print, printResults } from './measure.js';
import { runCatalog } from './program.js';

const ROUNDS = 5;
const WRITERS = [1, 8] as const;

let written = 0;

/** Counts commits of one title each, with one and with eight writers by turns. @param seconds - how long to write in all */
export async function benchWrites(seconds: number): Promise<void> {
  const database = await openTestDatabase();
  try {
    print(`Writing for ${seconds} s …\n`);
    const rates = WRITERS.map((): number[] => []);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [i, writers] of WRITERS.entries())
        rates[i]?.push(await write(database.db, writers, (seconds * 1000) / (ROUNDS * WRITERS.length)));
    }
    printResults(
      'Commits of a single title, per second',
      [''],
      WRITERS.map((writers, i) => ({ what: `writers: ${writers}`, figures: [count(median(rates[i] ?? []))] })),
    );
    await runCatalog(database.url, ['stats', 'verify']);
  } finally {
    await database.close();
  }
}

/** @returns commits per second of all writers together */
async function write(db: Knex, writers: number, ms: number): Promise<number> {
  const start = performance.now();
  const before = written;
  const writeAll = async (): Promise<void> => {
    while (performance.now() - start < ms)
      await db('titles').insert({ svc_id: `bench-${written++}`, media_type: 'movie', title: 'Title' });
  };
  await Promise.all(Array.from({ length: writers }, writeAll));
  return ((written - before) / (performance.now() - start)) * 1000;
}
