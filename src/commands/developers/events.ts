import { listEvents } from '../../events/events.js';
import { addJsonCommand } from '../add-json-command.js';
import { positiveInteger } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { printJson, printTable, shortTime, toSnakeCase } from '../output.js';

/** How many events are listed where the command line does not say. */
const DEFAULT_LIMIT = 50;

export const registerEvents: RegisterCommand = (program, { stdout, withDatabase }) => {
  addJsonCommand(program, 'events', 'catalog events --developer 1')
    .description('what happened to developers and their keys, when and by whom, newest first')
    .option('--developer <id>', 'only those of one developer', positiveInteger)
    .option('--limit <number>', 'the most events that are listed', positiveInteger, DEFAULT_LIMIT)
    .action(async ({ developer, limit, json }: { developer?: number; limit: number; json?: boolean }) => {
      const events = await withDatabase((db) => listEvents(db, { developerId: developer, limit }));
      if (json) printJson(stdout, { events: events.map(toSnakeCase) });
      else {
        printTable(stdout, events, {
          at: ({ at }) => shortTime(at),
          developer: ({ developerId }) => developerId,
          event: ({ kind }) => kind.replaceAll('_', ' '),
          key: ({ keyPrefix }) => keyPrefix,
          by: ({ actor }) => actor,
          details: ({ details }) =>
            Object.entries(details)
              .map(([name, value]) => `${name.replaceAll('_', ' ')} ${String(value)}`)
              .join(', ') || null,
        });
      }
    });
};
