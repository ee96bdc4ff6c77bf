import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { createSyntheticTitles, syntheticId } from '../support/catalog/synthetic-titles.js';
import { connectTo } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { createEmptyDatabase, createTestDatabase } from '../support/postgres.js';
import { startProgram, startServer } from '../support/program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { count, median, print, printResults, type Result } from './measure.js';
import { runCatalog, type Run } from './program.js';
import { keysFor } from './cases.js';

/** What is timed for each size of the catalogue. */
const STEPS = {
  publish: 'to publish a copy',
  begin: 'from nothing to equal',
  compare: 'to compare with the copy',
} as const;
type Step = keyof typeof STEPS;

const STEP_NAMES = Object.keys(STEPS) as readonly Step[];

/** The longest time of a comparison of a million rows, in seconds. */
const MOST_COMPARE_SECONDS = 20;
const MOST_MIB = 250;

/** Until the mirror has polled: before that, its position is that of the copy. */
const WARM_UP_SECONDS = 3;

/** Writes while the mirror follows. How far it is behind is looked at after each transaction. */
const WRITES_PER_SECOND = 1_000;
const WRITES_PER_TRANSACTION = 100;

/**
 * Publishes synthetic titles of several sizes, and takes, compares and follows with a mirror of them.
 *
 * @param sizes - numbers of titles, the smallest first @param seconds - of the writes
 * @returns whether all goals were met
 */
export async function benchMirror(sizes: readonly number[], seconds: number): Promise<boolean> {
  let isMet = true;
  for (const titles of sizes) {
    const { steps, lags } = await measure(titles, seconds);
    isMet = printSize(titles, steps, lags) && isMet;
  }
  return isMet;
}

function printSize(titles: number, steps: Readonly<Record<Step, Run>>, lags: readonly number[]): boolean {
  const mostSeconds = (MOST_COMPARE_SECONDS * Math.max(titles, 1_000_000)) / 1_000_000;
  return printResults(
    `A mirror of ${count(titles)} titles`,
    ['time', 'peak memory'],
    [
      ...STEP_NAMES.map((step): Result => {
        const { seconds, peakMiB } = steps[step];
        const most = step === 'compare' ? mostSeconds : Infinity;
        return {
          what: STEPS[step],
          figures: [`${seconds.toFixed(1)} s`, `${count(peakMiB)} MiB`],
          goal: {
            text: `at most ${MOST_MIB} MiB${most < Infinity ? ` and ${most} s` : ''}`,
            isMet: peakMiB <= MOST_MIB && seconds <= most,
          },
        };
      }),
      {
        what: `lag at ${count(WRITES_PER_SECOND)} writes/s`,
        figures: [`${median(lags).toFixed(1)} s`, `${Math.max(...lags).toFixed(1)} s at most`],
      },
    ],
  );
}

async function measure(
  titles: number,
  seconds: number,
): Promise<{ steps: Readonly<Record<Step, Run>>; lags: readonly number[] }> {
  const [catalogue, mirror] = await Promise.all([createTestDatabase(), createEmptyDatabase()]);
  const db = connectTo(catalogue.url);
  await createSyntheticTitles(catalogue.url, titles);
  print(`Made ${count(titles)} synthetic titles\n`);
  const [key = ''] = await keysFor(db, 1, 1);
  const folder = await temporaryFolder();
  const server = await startServer({ DATABASE_URL: catalogue.url, COPIES_DIR: folder });
  const environment = { CATALOG_API_KEY: key, MIRROR_DATABASE_URL: mirror.url };
  const run = (...args: string[]): Promise<Run> => runCatalog(catalogue.url, args, environment);
  const from = ['--from', server.url];
  try {
    const steps = {
      publish: await run('export', '--publish', folder, '--base-url', server.url),
      begin: await run('mirror', ...from, '--once'),
      compare: await run('mirror', 'verify', ...from),
    };
    const program = startProgram(['mirror', ...from], environment);
    try {
      await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
      return { steps, lags: await measureLags(db, mirror.url, titles, seconds) };
    } finally {
      program.child.kill('SIGTERM');
      await program.ended;
    }
  } finally {
    await db.destroy();
    await server.stop();
    await Promise.all([catalogue.drop(), mirror.drop()]);
  }
}

/** Writes titles at a steady rate while a mirror follows, and compares its position with the newest stamp. */
async function measureLags(db: Knex, mirrorUrl: string, titles: number, seconds: number): Promise<readonly number[]> {
  const mirrored = connectTo(mirrorUrl);
  const lags: number[] = [];
  const start = performance.now();
  const secondsSoFar = (): number => (performance.now() - start) / 1_000;
  try {
    for (let written = 0; secondsSoFar() < WARM_UP_SECONDS + seconds; written += WRITES_PER_TRANSACTION) {
      const ids = Array.from({ length: WRITES_PER_TRANSACTION }, (_, i) => syntheticId((written + i) % titles));
      // An update that changes nothing would not be in the feed.
      await db('titles')
        .whereIn('svc_id', ids)
        .update({ title: `Written ${written}` });
      const [[newest], [reached]] = await Promise.all([
        db('titles').max<{ at: string }[]>('updated_at as at'),
        mirrored.withSchema('catalog_mirror').from<{ position: string }>('state').pluck<string[]>('position'),
      ]);
      if (secondsSoFar() > WARM_UP_SECONDS) lags.push(Date.parse(newest?.at ?? '') / 1_000 - Number(reached));
      await delay(Math.max(0, (written / WRITES_PER_SECOND - secondsSoFar()) * 1_000));
    }
  } finally {
    await mirrored.destroy();
  }
  return lags;
}
