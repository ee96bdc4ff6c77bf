import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { createSyntheticTitles, syntheticId } from '../support/catalog/synthetic-titles.js';
import { connectTo } from '../support/database.js';
import { createEmptyDatabase, createTestDatabase } from '../support/postgres.js';
import { eventually } from '../support/eventually.js';
import { startProgram, startServer } from '../support/program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { count, median, printResults, type Result } from './measure.js';
import { runCatalog, type Run } from './program.js';

/** The longest time of a comparison of a million rows, in seconds. */
const MOST_VERIFY_SECONDS = 20;
const MOST_MIB = 250;

/** How the catalogue is written while a mirror follows it. */
const WRITES = { perSecond: 1_000, perTransaction: 10, seconds: 10 } as const;

/** A plan whose limits let a mirror poll once a second. */
const PLAN = {
  id: 'mirror',
  name: 'Mirror',
  requests_per_minute: 10_000,
  requests_per_day: 10_000_000,
  commercial_use: false,
};

/** Publishes synthetic titles, and takes and compares a mirror of them. @returns whether all goals were met */
export async function benchMirror(titles: number): Promise<boolean> {
  const [catalogue, mirror] = await Promise.all([createTestDatabase(), createEmptyDatabase()]);
  const db = connectTo(catalogue.url);
  await createSyntheticTitles(catalogue.url, titles);
  const developer = await createDeveloper(db, { projectName: 'Mirror', attributionRequired: false });
  await db('plans').insert(PLAN);
  const { key } = await createKey(db, { developerId: developer.id, planId: PLAN.id });
  const folder = await temporaryFolder();
  const server = await startServer({ DATABASE_URL: catalogue.url, COPIES_DIR: folder });
  const environment = { CATALOG_API_KEY: key, MIRROR_DATABASE_URL: mirror.url };
  const run = (...args: string[]): Promise<Run> => runCatalog(catalogue.url, args, environment);
  try {
    const goal = { text: `at most ${MOST_MIB} MiB`, isMet: false };
    const resultOf = (what: string, { seconds, peakMiB }: Run, mostSeconds = Infinity): Result => ({
      what,
      figures: [`${seconds.toFixed(1)} s`, `${count(peakMiB)} MiB`],
      goal: {
        text: mostSeconds < Infinity ? `${goal.text} and ${mostSeconds} s` : goal.text,
        isMet: peakMiB <= MOST_MIB && seconds <= mostSeconds,
      },
    });
    const lagOf = async (): Promise<Result> => {
      const { middle, worst } = await measureLag(db, mirror.url, server.url, environment);
      return {
        what: `lag at ${count(WRITES.perSecond)} writes/s`,
        figures: [`${middle.toFixed(1)} s`, `${worst.toFixed(1)} s at most`],
      };
    };
    const into = ['--from', server.url];
    return printResults(
      `A mirror of ${count(titles)} titles`,
      ['time', 'peak memory'],
      [
        resultOf('publish a copy', await run('export', '--publish', folder, '--base-url', server.url)),
        resultOf('from nothing to equal', await run('mirror', ...into, '--once')),
        resultOf(
          'compare with the copy',
          await run('mirror', 'verify', ...into),
          (MOST_VERIFY_SECONDS * Math.max(titles, 1_000_000)) / 1_000_000,
        ),
        await lagOf(),
      ],
    );
  } finally {
    await db.destroy();
    await server.stop();
    await Promise.all([catalogue.drop(), mirror.drop()]);
  }
}

/** Writes titles at a steady rate while a mirror follows, and compares its position with the newest stamp. */
async function measureLag(
  db: Knex,
  mirrorUrl: string,
  from: string,
  environment: Readonly<Record<string, string>>,
): Promise<{ middle: number; worst: number }> {
  const program = startProgram(['mirror', '--from', from], environment);
  const mirrored = connectTo(mirrorUrl);
  const lags: number[] = [];
  try {
    await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
    const pause = (1_000 * WRITES.perTransaction) / WRITES.perSecond;
    const turns = (WRITES.perSecond * WRITES.seconds) / WRITES.perTransaction;
    const start = performance.now();
    for (let turn = 0; turn < turns; turn += 1) {
      const ids = Array.from({ length: WRITES.perTransaction }, (_, index) =>
        syntheticId(turn * WRITES.perTransaction + index),
      );
      await db('titles')
        .whereIn('svc_id', ids)
        .update({ title: `Written ${turn}` });
      // Before the first poll, the position is that of the copy.
      if (turn % 10 === 9 && turn >= turns / 4) {
        const [[newest], [reached]] = await Promise.all([
          db('titles').max<{ at: string }[]>('updated_at as at'),
          mirrored.withSchema('catalog_mirror').from<{ position: string }>('state').pluck<string[]>('position'),
        ]);
        lags.push(Date.parse(newest?.at ?? '') / 1_000 - Number(reached));
      }
      await delay(Math.max(0, start + (turn + 1) * pause - performance.now()));
    }
  } finally {
    program.child.kill('SIGTERM');
    await program.ended;
    await mirrored.destroy();
  }
  return { middle: median(lags), worst: Math.max(...lags) };
}
