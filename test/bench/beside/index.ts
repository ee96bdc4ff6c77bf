import { createTestDatabase } from '../../support/postgres.js';
import { count, print, printResults, type Result } from '../measure.js';
import { benchAccounting } from './accounting.js';
import { fill } from './fill.js';
import { openOne } from './meter.js';
import { benchCommands, benchPages } from './reads.js';
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
  const db = openOne(url);
  try {
    print(`Filling a database with ${count(keys)} keys, ${count(active)} in use …\n`);
    const { ids, hostile } = await fill(db, keys, active);
    const groups: readonly (readonly [what: string, measure: () => Promise<Result[]>])[] = [
      ['Pages', () => benchPages(db, hostile)],
      ['Accounting', () => benchAccounting(db, ids)],
      ['Upkeep', () => benchUpkeep(db, ids)],
    ];
    let isMet = true;
    for (const [what, measure] of groups) {
      const headings = ['CPU time of PostgreSQL', 'longest statement', 'log of changes'];
      isMet = printResults(what, headings, await measure()) && isMet;
    }
    const commands = await benchCommands(url);
    return printResults('Commands that list everything', ['CPU time', 'peak memory', 'lines'], commands) && isMet;
  } finally {
    await db.destroy();
    await database.drop();
  }
}
