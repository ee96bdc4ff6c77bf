import { Option, type Command } from 'commander';
import { listKeys, createKey } from '../../keys/keys.js';
import type { Expiry } from '../../keys/expiry.js';
import { addJsonCommand } from '../add-json-command.js';
import { expiry, planId, positiveInteger, text } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { printJson, printLine, printTable, shortTime } from '../output.js';
import { registerKeyChanges } from './key-changes.js';
import { describeState, keyToJson } from './key-output.js';

interface CreateOptions {
  developer?: number;
  plan?: string;
  label?: string;
  expires?: Expiry;
  demo?: boolean;
  json?: boolean;
}

/** `catalog keys create|list|set-plan|roll|revoke` */
export const registerKeys: RegisterCommand = (program, context) => {
  const { stdout, withDatabase } = context;
  const keys = program.command('keys').description('API keys');

  addJsonCommand(
    keys,
    'create',
    'catalog keys create --developer 1 --plan free --label production',
    'catalog keys create --developer 1 --plan free --expires 90d',
  )
    .description('create a key and print it: this once, it is not stored')
    .option('--developer <id>', 'whose key it is', positiveInteger)
    .option('--plan <plan>', 'the plan that sets its limits', planId)
    .option('--label <text>', 'to tell keys apart, such as the environment it is for', text(200))
    .option('--expires <when>', 'when it ends by itself: a duration such as 90d, a date or a time in UTC', expiry)
    .addOption(
      new Option('--demo', 'a key for the demo developer instead of --developer and --plan').conflicts([
        'developer',
        'plan',
        'label',
        'expires',
      ]),
    )
    .action(async ({ developer, plan, label, expires, demo, json }: CreateOptions, command: Command) => {
      if (!demo && developer === undefined) command.error("error: required option '--developer <id>' not specified");
      if (!demo && plan === undefined) command.error("error: required option '--plan <plan>' not specified");
      const { key, ...record } = await withDatabase(async (db) =>
        developer === undefined || plan === undefined
          ? (await import('../demo/prepare-demo.js')).createDemoKey(db)
          : createKey(db, { developerId: developer, planId: plan, label, expires }),
      );
      if (json) printJson(stdout, { key, ...keyToJson(record) });
      else {
        const end = record.expiresAt === null ? '' : `, until ${shortTime(record.expiresAt) ?? ''}`;
        printLine(
          stdout,
          `Created ${record.prefix} on plan ${record.planId}${end}. The key is shown this once; keep it safe:`,
        );
        printLine(stdout, `  ${key}`);
      }
    });

  addJsonCommand(keys, 'list', 'catalog keys list --developer 1')
    .description('list keys by their prefix')
    .option('--developer <id>', 'only those of one developer', positiveInteger)
    .action(async ({ developer, json }: { developer?: number; json?: boolean }) => {
      const rows = await withDatabase((db) => listKeys(db, developer));
      if (json) printJson(stdout, { keys: rows.map(keyToJson) });
      else {
        printTable(stdout, rows, {
          prefix: ({ prefix }) => prefix,
          developer: ({ developerId }) => developerId,
          plan: ({ planId: plan }) => plan,
          label: ({ label }) => label,
          created: ({ createdAt }) => shortTime(createdAt),
          'last used': ({ lastUsedAt }) => shortTime(lastUsedAt),
          expires: ({ expiresAt }) => shortTime(expiresAt),
          state: describeState,
        });
      }
    });

  registerKeyChanges(keys, context);
};
