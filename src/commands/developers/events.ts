import { findDeveloper } from '../../developers/developers.js';
import { listEvents, type DeveloperEvent } from '../../events/events.js';
import { positiveInteger } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand, report } from '../output/report.js';
import { age, table, type Columns } from '../output/table.js';

const DEFAULT_LIMIT = 50;

/** The columns of a table of events. */
const EVENT_COLUMNS: Columns<DeveloperEvent> = {
  at: ({ at }) => age(at),
  developer: ({ developerId }) => developerId,
  event: ({ kind }) => kind.replaceAll('_', ' '),
  key: ({ keyPrefix }) => keyPrefix,
  by: ({ actor }) => actor,
  details: ({ details }) =>
    Object.entries(details)
      .map(([name, value]) => `${name.replaceAll('_', ' ')} ${String(value)}`)
      .join(', ') || null,
};

export const registerEvents: RegisterCommand = (program, { stdout, withDatabase }) => {
  addJsonCommand(program, 'events', 'catalog events --developer 1')
    .description('List events of developers and keys, newest first: what happened, when, and who did it.')
    .option('--developer <id>', 'events of one developer only', positiveInteger)
    .option('--limit <number>', 'maximum number of events', positiveInteger, DEFAULT_LIMIT)
    .action(async ({ developer, limit, json }: { developer?: number; limit: number; json?: boolean }) => {
      const events = await withDatabase(async (db) => {
        if (developer !== undefined) await findDeveloper(db, developer);
        return listEvents(db, { developerId: developer, limit });
      });
      report(stdout, json, { events }, table(events, EVENT_COLUMNS, stdout));
    });
};
