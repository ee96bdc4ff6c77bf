import { InvalidArgumentError, Option } from 'commander';
import { findDeveloper } from '../../developers/developers.js';
import {
  readUsageByDeveloper,
  readUsageByOwnedKey,
  type DeveloperTotal,
  type OwnedKeyTotal,
} from '../../usage/usage-totals.js';
import { csvText } from '../../usage/csv.js';
import { KEPT_DAYS, type UsageCounts } from '../../usage/write-usage.js';
import { positiveInteger } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { addNotes } from '../output/help.js';
import { addJsonCommand, report } from '../output/report.js';
import { table } from '../output/table.js';

/** The default of `--days`, as on the pages of developers. */
const DEFAULT_DAYS = 30;

interface UsageOptions {
  readonly developer?: number;
  readonly byKey?: boolean;
  readonly days: number;
  readonly csv?: boolean;
  readonly json?: boolean;
}

/** The columns of totals, in the table and in CSV. */
type TotalColumns<Total> = Readonly<Record<string, (total: Total) => string | number | null>>;

const COUNT_COLUMNS: TotalColumns<UsageCounts> = {
  requests: requestsOf,
  served: ({ served }) => served,
  refused: ({ refused }) => refused,
  failed: ({ failed }) => failed,
};

const DEVELOPER_COLUMNS: TotalColumns<DeveloperTotal> = {
  developer: ({ developerId }) => developerId,
  'project name': ({ projectName }) => projectName,
  ...COUNT_COLUMNS,
};

const KEY_COLUMNS: TotalColumns<OwnedKeyTotal> = {
  prefix: ({ keyPrefix }) => keyPrefix,
  label: ({ label }) => label,
  ...DEVELOPER_COLUMNS,
};

export const registerUsage: RegisterCommand = (program, { stdout, withDatabase }) => {
  addNotes(
    addJsonCommand(program, 'usage', 'catalog usage', 'catalog usage --by-key --developer 1 --days 7 --csv'),
    `Refused requests exceeded a limit of their plan. Failed requests are errors of the service. Servers save their
counts about every 10 seconds.`,
  )
    .description('Show the requests of all developers, the most active first.')
    .option('--by-key', 'show each key with requests instead of each developer')
    .option('--developer <id>', 'requests of one developer only', positiveInteger)
    .option(
      '--days <number>',
      `days to add up, in UTC and with the current one, 1 to ${KEPT_DAYS}`,
      keptDays,
      DEFAULT_DAYS,
    )
    .addOption(new Option('--csv', 'print comma-separated values').conflicts('json'))
    .action(async ({ developer, byKey, days, ...form }: UsageOptions) => {
      const read = <T>(readTotals: (...args: Parameters<typeof readUsageByDeveloper>) => Promise<T>): Promise<T> =>
        withDatabase(
          async (db) => {
            if (developer !== undefined) await findDeveloper(db, developer);
            return readTotals(db, { days, developerId: developer });
          },
          { mayBeReadOnly: true },
        );
      if (byKey) print(form, days, 'keys', await read(readUsageByOwnedKey), KEY_COLUMNS);
      else print(form, days, 'developers', await read(readUsageByDeveloper), DEVELOPER_COLUMNS);
    });

  function print<Total extends UsageCounts>(
    form: Pick<UsageOptions, 'csv' | 'json'>,
    days: number,
    name: string,
    totals: readonly Total[],
    columns: TotalColumns<Total>,
  ): void {
    if (form.csv) {
      stdout.write(csv(totals, columns));
      return;
    }
    const rows = totals.map((counts) => ({ ...counts, requests: requestsOf(counts) }));
    report(stdout, form.json, { days, [name]: rows }, table(totals, columns, stdout));
  }
};

function requestsOf({ served, refused, failed }: UsageCounts): number {
  return served + refused + failed;
}

/** @throws InvalidArgumentError for more days than usage is kept */
function keptDays(text: string): number {
  const days = positiveInteger(text);
  if (days <= KEPT_DAYS) return days;
  throw new InvalidArgumentError(`Usage is kept for ${KEPT_DAYS} days.`);
}

/** Writes rows as CSV (RFC 4180). A heading is the name of its column with underscores for spaces. */
function csv<Row>(rows: readonly Row[], columns: TotalColumns<Row>): string {
  const read = Object.values(columns);
  const cellOf = (value: string | number | null): string =>
    typeof value === 'string' ? csvText(value) : String(value ?? '');
  const lines = [
    Object.keys(columns).map((name) => name.replaceAll(' ', '_')),
    ...rows.map((row) => read.map((column) => cellOf(column(row)))),
  ];
  return lines.map((cells) => `${cells.join(',')}\r\n`).join('');
}
