import { InvalidArgumentError } from 'commander';
import type { Knex } from 'knex';
import { findDeveloper } from '../../developers/developers.js';
import {
  readUsageByDeveloper,
  readUsageByOwnedKey,
  type DeveloperTotal,
  type OwnedKeyTotal,
} from '../../usage/usage-totals.js';
import type { UsageCounts } from '../../usage/outcome.js';
import { KEPT_DAYS } from '../../usage/usage-log.js';
import { positiveInteger } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand, reportRows, type JsonFlag } from '../output/report.js';
import type { Columns } from '../output/table.js';

/** The default of `--days`, as on the pages of developers. */
const DEFAULT_DAYS = 30;

interface UsageOptions extends JsonFlag {
  readonly developer?: number;
  readonly byKey?: boolean;
  readonly days: number;
  readonly limit?: number;
}

const NOTES = `Rejected requests are errors of the client (4xx), refused ones exceeded a limit of their plan (429), and failed
ones are errors of the service (5xx). Counts are up to about two minutes old.`;

const EXAMPLES = ['catalog usage', 'catalog usage --by-key --developer 1 --days 7 --json'];

const COUNT_COLUMNS: Columns<UsageCounts> = {
  requests: requestsOf,
  served: ({ served }) => served,
  rejected: ({ rejected }) => rejected,
  refused: ({ refused }) => refused,
  failed: ({ failed }) => failed,
};

const DEVELOPER_COLUMNS: Columns<DeveloperTotal> = {
  developer: ({ developerId }) => developerId,
  'project name': ({ projectName }) => projectName,
  ...COUNT_COLUMNS,
};

const KEY_COLUMNS: Columns<OwnedKeyTotal> = {
  prefix: ({ keyPrefix }) => keyPrefix,
  label: ({ label }) => label,
  ...DEVELOPER_COLUMNS,
};

export const registerUsage: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'usage', EXAMPLES, NOTES)
    .description('Show the requests of all developers, the most active first.')
    .option('--by-key', 'show each key with requests instead of each developer')
    .option('--developer <id>', 'requests of one developer only', positiveInteger)
    .option(
      '--days <number>',
      `days to add up, in UTC and with the current one, 1 to ${KEPT_DAYS}`,
      keptDays,
      DEFAULT_DAYS,
    )
    .option('--limit <number>', 'maximum number of developers or keys; all without it', positiveInteger)
    .action(({ developer, byKey, days, limit, json }: UsageOptions) => {
      const print = <Total extends UsageCounts>(
        name: string,
        readTotals: (...args: Parameters<typeof readUsageByDeveloper>) => Promise<readonly Total[]>,
        columns: Columns<Total>,
      ): Promise<void> => {
        const read = async function* (db: Knex) {
          if (developer !== undefined) await findDeveloper(db, developer);
          yield readTotals(db, { days, developerId: developer, ...(limit !== undefined && { limit }) });
        };
        const toDocument = (counts: Total) => ({ ...counts, requests: requestsOf(counts) });
        return reportRows(context, json, read, { name, columns, toDocument, members: { days }, mayBeReadOnly: true });
      };
      return byKey
        ? print('keys', readUsageByOwnedKey, KEY_COLUMNS)
        : print('developers', readUsageByDeveloper, DEVELOPER_COLUMNS);
    });
};

function requestsOf({ served, rejected, refused, failed }: UsageCounts): number {
  return served + rejected + refused + failed;
}

/** @throws InvalidArgumentError for more days than usage is kept */
function keptDays(text: string): number {
  const days = positiveInteger(text);
  if (days <= KEPT_DAYS) return days;
  throw new InvalidArgumentError(`Usage is kept for ${KEPT_DAYS} days.`);
}
