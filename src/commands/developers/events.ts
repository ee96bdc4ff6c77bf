import type { Knex } from 'knex';
import { findDeveloper } from '../../developers/developers.js';
import { listEvents, type DeveloperEvent, type EventDetails } from '../../events/events.js';
import { readChunks } from '../../platform/async/chunks.js';
import { positiveInteger } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand, reportRows, type JsonFlag } from '../output/report.js';
import { age, type Columns } from '../output/table.js';

const DEFAULT_LIMIT = 50;

/** The details in the order that they are printed in. The database returns the shortest name first: `to`, then `from`. */
const DETAILS: Readonly<Record<keyof EventDetails, string>> = {
  plan: 'plan',
  from: 'from',
  to: 'to',
  successor: 'successor',
  expires_at: 'expires at',
  issuer: 'issuer',
  subject: 'subject',
  name: 'name',
  with: 'with',
  browser: 'browser',
  address: 'address',
};

const COLUMNS: Columns<DeveloperEvent> = {
  at: ({ at }) => age(at),
  developer: ({ developerId }) => developerId,
  event: ({ kind }) => kind.replaceAll('_', ' '),
  key: ({ keyPrefix }) => keyPrefix,
  by: ({ actor }) => actor,
  details: ({ details }) =>
    (Object.keys(DETAILS) as (keyof EventDetails)[])
      .filter((name) => details[name] !== undefined)
      .map((name) => `${DETAILS[name]} ${details[name]}`)
      .join(', ') || null,
};

export const registerEvents: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'events', 'catalog events --developer 1')
    .description('List events of developers and keys, newest first: what happened, when, and who did it.')
    .option('--developer <id>', 'events of one developer only', positiveInteger)
    .option('--limit <number>', 'maximum number of events', positiveInteger, DEFAULT_LIMIT)
    .action(({ developer, limit, json }: { developer?: number; limit: number } & JsonFlag) => {
      const read = async function* (db: Knex) {
        if (developer !== undefined) await findDeveloper(db, developer);
        yield* readChunks<DeveloperEvent>(limit, (after, most) =>
          listEvents(db, { developerId: developer, after, limit: most }),
        );
      };
      const toDocument = ({ id: _place, ...event }: DeveloperEvent) => event;
      return reportRows(context, json, read, { name: 'events', columns: COLUMNS, toDocument });
    });
};
