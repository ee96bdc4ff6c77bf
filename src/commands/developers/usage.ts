import { InvalidArgumentError, Option } from 'commander';
import type { Knex } from 'knex';
import { findDeveloper } from '../../developers/developers.js';
import { readInParts } from '../../platform/postgres/rows.js';
import { KIND_NAMES, KINDS, total, type UsageCounts } from '../../usage/outcome.js';
import { KEPT_DAYS } from '../../usage/usage-log.js';
import {
  lackTotals,
  MOST_HOURS,
  TOTAL_DAYS,
  USAGE_SORTS,
  usageByDeveloper,
  usageByKey,
  type DeveloperTotal,
  type OwnedKeyTotal,
  type TotalsQuery,
  type UsageSort,
} from '../../usage/usage-totals.js';
import { positiveInteger } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand, reportRows, type JsonFlag } from '../output/report.js';
import type { Columns } from '../output/table.js';

interface UsageOptions extends JsonFlag {
  readonly developer?: number;
  readonly byKey?: boolean;
  readonly hours?: number;
  readonly days: number;
  readonly sort: UsageSort;
  readonly limit?: number;
}

const NOTES = `Client errors are 4xx answers and requests that the client cancelled, rate limited ones exceeded a limit of their
plan (429), and server errors are 5xx answers. Counts are up to about two minutes old; those of all developers in
${TOTAL_DAYS} days, which a server adds up every ten minutes, up to fifteen. Hours are those of the clock: --hours 1 counts from the start of the last full hour.`;

const NO_TOTALS = `catalog: No requests of ${TOTAL_DAYS} days are added up yet: a server does so every ten minutes. Until then, use --days ${TOTAL_DAYS - 1}.\n`;

const EXAMPLES = [
  'catalog usage --hours 1 --sort rate-limited --limit 10',
  'catalog usage --by-key --developer 1 --days 7 --json',
];

const COUNT_COLUMNS: Columns<UsageCounts> = {
  requests: total,
  ...Object.fromEntries(KINDS.map((kind) => [KIND_NAMES[kind], (counts: UsageCounts) => counts[kind]])),
};

const DEVELOPER_COLUMNS: Columns<Omit<DeveloperTotal, 'rank'>> = {
  developer: ({ developerId }) => developerId,
  'project name': ({ projectName }) => projectName,
  ...COUNT_COLUMNS,
};

const KEY_COLUMNS: Columns<OwnedKeyTotal> = {
  prefix: ({ keyPrefix }) => keyPrefix,
  label: ({ label }) => label,
  developer: ({ developerId }) => developerId,
  'project name': ({ projectName }) => projectName,
  ...COUNT_COLUMNS,
};

export const registerUsage: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'usage', EXAMPLES, NOTES)
    .description('Show developers with requests, the most active first.')
    .option('--by-key', 'show each key with requests instead of each developer')
    .option('--developer <id>', 'requests of one developer only', positiveInteger)
    .addOption(
      new Option('--hours <number>', `hours to add up, with the current one, 1 to ${MOST_HOURS}`)
        .argParser(upTo(MOST_HOURS, 'hours'))
        .conflicts('days'),
    )
    .option(
      '--days <number>',
      `days to add up, in UTC and with the current one, 1 to ${KEPT_DAYS}`,
      upTo(KEPT_DAYS, 'days'),
      TOTAL_DAYS,
    )
    .addOption(new Option('--sort <kind>', 'the kind of requests to sort by').choices(USAGE_SORTS).default('requests'))
    .option('--limit <number>', 'maximum number of developers or keys; all without it', positiveInteger)
    .action(({ developer, byKey, hours, days, sort, limit, json }: UsageOptions) => {
      const span = hours === undefined ? { days } : { hours };
      const query: TotalsQuery = { span, sort, developerId: developer, limit };
      const read = async function* <Row>(db: Knex): AsyncGenerator<readonly Row[]> {
        if (developer !== undefined) await findDeveloper(db, developer);
        if (!byKey && (await lackTotals(db, query))) context.stderr.write(NO_TOTALS);
        // A developer who is named has a row also without requests.
        yield* readInParts<Row>(
          db,
          byKey ? usageByKey(query) : usageByDeveloper(developer === undefined ? query : { ...query, sort: undefined }),
        );
      };
      const toDocument = (counts: UsageCounts) => ({ ...counts, requests: total(counts) });
      const format = { members: { ...span, sort }, mayBeReadOnly: true } as const;
      return byKey
        ? reportRows<OwnedKeyTotal>(context, json, read, { ...format, name: 'keys', columns: KEY_COLUMNS, toDocument })
        : reportRows<DeveloperTotal>(context, json, read, {
            ...format,
            name: 'developers',
            columns: DEVELOPER_COLUMNS,
            toDocument: ({ rank: _rank, ...counted }) => toDocument(counted),
          });
    });
};

/** @returns a parser of a number up to the most for which there is usage */
function upTo(most: number, unit: string): (text: string) => number {
  return (text) => {
    const number = positiveInteger(text);
    if (number <= most) return number;
    throw new InvalidArgumentError(`At most ${most} ${unit} can be shown.`);
  };
}
