import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { createSyntheticTitles } from '../support/catalog/synthetic-titles.js';
import { createTestDatabase } from '../support/postgres.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { count, median, print, printResults, type Result } from './measure.js';
import { runCatalog } from './program.js';

const COLUMNS = 'svc_id, media_type, title, has_bundles, available_in_library';

/** Each is measured this often, by turns; the medians count. */
const ROUNDS = 3;

const MOST_TIMES_COPY = 4;
const MOST_MIB = 200;
/** A process that kept all rows in memory would need several times as much for four times the rows. */
const MOST_GROWTH = 1.1;

/**
 * Loads a CSV file of synthetic titles by turns with `catalog import` and with a bare COPY. The COPY goes into a plain
 * table with the same columns and a primary key.
 *
 * @param rows - the number in the large file; the small one has a quarter of them
 * @returns whether all goals were met
 */
export async function benchImport(rows: number): Promise<boolean> {
  const folder = await temporaryFolder();
  const file = (name: string): string => join(folder, `${name}.csv`);
  await writeFiles(rows, file);
  const sorted = await compare(file('sorted'));
  const shuffled = await compare(file('shuffled'));
  const quarter = await loadOnce(file('quarter'));
  await rm(folder, { recursive: true });

  const growth = sorted.peakMiB / quarter.peakMiB;
  return printResults(
    `Import of ${count(rows)} rows of CSV`,
    ['bare COPY', 'first import', 'ratio', 'unchanged again', 'peak memory'],
    [
      resultOf('sorted by id', sorted),
      resultOf('in random order', shuffled),
      {
        what: `a quarter of it (${count(rows / 4)} rows)`,
        figures: ['', inSeconds(quarter.first), '', inSeconds(quarter.again), `${count(quarter.peakMiB)} MiB`],
        goal: { text: `memory flat (×${growth.toFixed(2)})`, isMet: growth <= MOST_GROWTH },
      },
    ],
  );
}

interface Loaded {
  readonly first: number;
  readonly again: number;
  readonly peakMiB: number;
}

function resultOf(what: string, { copy, first, again, peakMiB }: Loaded & { readonly copy: number }): Result {
  const ratio = first / copy;
  return {
    what,
    figures: [inSeconds(copy), inSeconds(first), `×${ratio.toFixed(2)}`, inSeconds(again), `${count(peakMiB)} MiB`],
    goal: {
      text: `≤ ×${MOST_TIMES_COPY}, again faster, < ${MOST_MIB} MiB`,
      isMet: ratio <= MOST_TIMES_COPY && again < first && peakMiB < MOST_MIB,
    },
  };
}

function inSeconds(seconds: number): string {
  return `${seconds.toFixed(2)} s`;
}

/** Writes synthetic titles to CSV files: all in order of ids, all in random order, and a quarter of them. */
async function writeFiles(rows: number, file: (name: string) => string): Promise<void> {
  print(`Making ${count(rows)} synthetic titles …\n`);
  await withDatabase(async (url, client) => {
    await createSyntheticTitles(url, rows);
    for (const [name, rest] of [
      ['sorted', 'order by svc_id'],
      ['shuffled', 'order by md5(svc_id)'],
      ['quarter', `order by svc_id limit ${Math.floor(rows / 4)}`],
    ] as const) {
      const copy = client.query(copyTo(`copy (select ${COLUMNS} from titles ${rest}) to stdout (format csv, header)`));
      await pipeline(copy, createWriteStream(file(name)));
    }
  });
}

async function compare(file: string): Promise<Loaded & { readonly copy: number }> {
  const copies: number[] = [];
  const loads: Loaded[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    copies.push(await copyOnce(file));
    loads.push(await loadOnce(file));
  }
  return {
    copy: median(copies),
    first: median(loads.map(({ first }) => first)),
    again: median(loads.map(({ again }) => again)),
    peakMiB: Math.max(...loads.map(({ peakMiB }) => peakMiB)),
  };
}

/** @returns seconds of the COPY alone */
async function copyOnce(file: string): Promise<number> {
  return withDatabase(async (_url, client) => {
    await client.query('create table plain (like titles)');
    await client.query('alter table plain add primary key (svc_id)');
    await client.query('alter table plain alter created_at set default now(), alter updated_at set default now()');
    await client.query('checkpoint');
    const start = performance.now();
    await pipeline(
      createReadStream(file, { highWaterMark: 256 * 1024 }),
      client.query(copyFrom(`copy plain (${COLUMNS}) from stdin (format csv, header)`)),
    );
    return (performance.now() - start) / 1000;
  });
}

async function loadOnce(file: string): Promise<Loaded> {
  return withDatabase(async (url, client) => {
    await client.query('checkpoint');
    const first = await runCatalog(url, ['import', file, '--kind', 'titles']);
    const again = await runCatalog(url, ['import', file, '--kind', 'titles']);
    await runCatalog(url, ['stats', 'verify']);
    print(`  imported in ${inSeconds(first.seconds)}, again in ${inSeconds(again.seconds)}\n`);
    return { first: first.seconds, again: again.seconds, peakMiB: Math.max(first.peakMiB, again.peakMiB) };
  });
}

async function withDatabase<T>(use: (url: string, client: pg.Client) => Promise<T>): Promise<T> {
  const database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return await use(database.url, client);
  } finally {
    await client.end();
    await database.drop();
  }
}
