import { createSyntheticTitles } from '../support/catalog/synthetic-titles.js';
import { connectTo } from '../support/database.js';
import { createEmptyDatabase, createTestDatabase } from '../support/postgres.js';
import { startServer } from '../support/program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { count, printResults, type Result } from './measure.js';
import { runCatalog, type Run } from './program.js';

/** The longest time of a comparison of a million rows, in seconds. */
const MOST_VERIFY_SECONDS = 20;
const MOST_MIB = 250;

/** Publishes synthetic titles, and takes and compares a mirror of them. @returns whether all goals were met */
export async function benchMirror(titles: number): Promise<boolean> {
  const [catalogue, mirror] = await Promise.all([createTestDatabase(), createEmptyDatabase()]);
  const db = connectTo(catalogue.url);
  await createSyntheticTitles(catalogue.url, titles);
  const developer = await createDeveloper(db, { projectName: 'Mirror', attributionRequired: false });
  const { key } = await createKey(db, { developerId: developer.id, planId: 'free' });
  await db.destroy();
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
      ],
    );
  } finally {
    await server.stop();
    await Promise.all([catalogue.drop(), mirror.drop()]);
  }
}
