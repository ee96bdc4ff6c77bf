import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { createSyntheticTitles } from '../support/catalog/synthetic-titles.js';
import { createTestDatabase } from '../support/postgres.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { count, median, print, printResults, type Result } from './measure.js';
import { runCatalog, type Run } from './program.js';

/** The orders of rows, in SQL. */
const ORDERS = { 'sorted by id': 'svc_id', 'in random order': 'md5(svc_id)' } as const;

/** Each is measured this often; the medians count. */
const ROUNDS = 3;

const MOST_MIB = 200;

/**
 * Measures `catalog import` of a CSV file of synthetic titles, and the import of the same file again.
 *
 * @returns whether all goals were met
 */
export async function benchImport(rows: number): Promise<boolean> {
  const folder = await temporaryFolder();
  print(`Making ${count(rows)} synthetic titles …\n`);
  const source = await createTestDatabase();
  const client = new pg.Client({ connectionString: source.url });
  const results: Result[] = [];
  try {
    await client.connect();
    await createSyntheticTitles(source.url, rows);
    for (const [order, by] of Object.entries(ORDERS)) {
      const file = join(folder, `${by}.csv`);
      const columns = 'svc_id, media_type, title, has_bundles, available_in_library';
      const copy = copyTo(`copy (select ${columns} from titles order by ${by}) to stdout (format csv, header)`);
      await pipeline(client.query(copy), createWriteStream(file));
      results.push(await load(order, file));
    }
  } finally {
    await client.end();
    await source.drop();
    await rm(folder, { recursive: true });
  }
  return printResults(
    `Import of ${count(rows)} titles as CSV`,
    ['first import', 'unchanged again', 'peak memory'],
    results,
  );
}

async function load(what: string, file: string): Promise<Result> {
  const rounds: Run[][] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const database = await createTestDatabase();
    const run = (...args: string[]): Promise<Run> => runCatalog(database.url, args);
    const importing = ['import', file, '--kind', 'titles'];
    rounds.push([await run(...importing), await run(...importing)]);
    await run('stats', 'verify');
    await database.drop();
  }
  const [first, again] = [0, 1].map((i) => median(rounds.map((runs) => runs[i]?.seconds ?? NaN)));
  const peakMiB = Math.max(...rounds.flat().map((run) => run.peakMiB));
  return {
    what,
    figures: [...[first, again].map((seconds) => `${seconds?.toFixed(2)} s`), `${count(peakMiB)} MiB`],
    goal: {
      text: `again faster, < ${MOST_MIB} MiB`,
      isMet: (again ?? NaN) < (first ?? NaN) && peakMiB < MOST_MIB,
    },
  };
}
