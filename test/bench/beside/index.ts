import { connectTo } from '../../support/database.js';
import { createTestDatabase } from '../../support/postgres.js';
import { count, print, printResults } from '../measure.js';
import { benchAccounting } from './accounting.js';
import { fill } from './fill.js';
import { benchCommands, benchOperator, benchTail, benchUsagePages } from './reads.js';
import { benchUpkeep } from './upkeep.js';

/**
 * Measures what servers do beside the requests, and what reads everything, on a database that SQL fills as months would:
 * the CPU time of PostgreSQL and what it writes to its log. Page images after a checkpoint come on top of that.
 *
 * @param keys - of all developers @param active - that are in use all the time
 * @returns whether all goals were met
 */
export async function benchBeside(keys: number, active: number): Promise<boolean> {
  const database = await createTestDatabase();
  const { url } = database;
  const db = connectTo(url, { poolSize: 1 });
  try {
    print(`Filling a database with ${count(keys)} keys, ${count(active)} in use …\n`);
    const { ids, hostile } = await fill(db, keys, active);
    const results = [
      ...(await benchUsagePages(db, hostile)),
      ...(await benchOperator(url)),
      ...(await benchAccounting(db, url, ids)),
      ...(await benchUpkeep(db, ids)),
      ...(await benchTail(db, url)),
    ];
    const commands = await benchCommands(url, keys);
    const isMet = printResults(
      'Beside the requests: CPU time of PostgreSQL, and its log of changes',
      ['CPU time', 'longest statement', 'log'],
      results,
    );
    return printResults('Commands that list everything', ['CPU time', 'peak memory', 'lines'], commands) && isMet;
  } finally {
    await db.destroy();
    await database.drop();
  }
}
