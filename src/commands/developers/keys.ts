import { Option, type Command } from 'commander';
import type { Knex } from 'knex';
import { createKey, listKeys, revokeKey, setKeyPlan, type KeyRecord } from '../../keys/keys.js';
import { planId, positiveInteger, text } from '../arguments.js';
import { endCachedRecords, type CommandContext, type RegisterCommand } from '../context.js';
import { printJson, printLine, printTable, shortTime } from '../output.js';

interface CreateOptions {
  developer?: number;
  plan?: string;
  label?: string;
  demo?: boolean;
  json?: boolean;
}

const PREFIX_HELP = 'what "catalog keys list" shows, svc_ and 8 characters; a whole key will do too';

/** `catalog keys create|list|set-plan|revoke` */
export const registerKeys: RegisterCommand = (program, context) => {
  const { stdout, withDatabase } = context;
  const keys = program.command('keys').description('API keys');

  keys
    .command('create')
    .description('create a key and print it: this once, it is not stored')
    .option('--developer <id>', 'whose key it is', positiveInteger)
    .option('--plan <plan>', 'the plan that sets its limits', planId)
    .option('--label <text>', 'to tell keys apart, such as the environment it is for', text(200))
    .addOption(
      new Option('--demo', 'a key for the demo developer instead of --developer and --plan').conflicts([
        'developer',
        'plan',
        'label',
      ]),
    )
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  catalog keys create --developer 1 --plan free --label production')
    .action(async ({ developer, plan, label, demo, json }: CreateOptions, command: Command) => {
      if (!demo && developer === undefined) command.error("error: required option '--developer <id>' not specified");
      if (!demo && plan === undefined) command.error("error: required option '--plan <plan>' not specified");
      const { key, ...record } = await withDatabase(async (db) =>
        developer === undefined || plan === undefined
          ? (await import('../demo/prepare-demo.js')).createDemoKey(db)
          : createKey(db, { developerId: developer, planId: plan, label }),
      );
      if (json) printJson(stdout, { key, ...toJson(record) });
      else {
        printLine(
          stdout,
          `Created ${record.prefix} on plan ${record.planId}. The key is shown this once; keep it safe:`,
        );
        printLine(stdout, `  ${key}`);
      }
    });

  keys
    .command('list')
    .description('list keys by their prefix')
    .option('--developer <id>', 'only those of one developer', positiveInteger)
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  catalog keys list --developer 1')
    .action(async ({ developer, json }: { developer?: number; json?: boolean }) => {
      const rows = await withDatabase((db) => listKeys(db, developer));
      if (json) printJson(stdout, { keys: rows.map(toJson) });
      else {
        printTable(stdout, rows, {
          prefix: ({ prefix }) => prefix,
          developer: ({ developerId }) => developerId,
          plan: ({ planId: plan }) => plan,
          label: ({ label }) => label,
          created: ({ createdAt }) => shortTime(createdAt),
          'last used': ({ lastUsedAt }) => shortTime(lastUsedAt),
          revoked: ({ revokedAt }) => shortTime(revokedAt),
        });
      }
    });

  keys
    .command('set-plan')
    .description('put a key on another plan. Holds from the next request on')
    .argument('<prefix>', PREFIX_HELP)
    .requiredOption('--plan <plan>', 'the plan that sets its limits', planId)
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  catalog keys set-plan svc_1a2B3c4D --plan pro')
    .action(async (prefix: string, { plan, json }: { plan: string; json?: boolean }) => {
      const { record, previousPlanId, since } = await withDatabase(async (db) => {
        const moved = await setKeyPlan(db, toPrefix(prefix), plan);
        return { ...moved, since: moved.previousPlanId === plan ? undefined : await makeEffective(context, db) };
      });
      const changed = since !== undefined;
      if (json) printJson(stdout, { ...toJson(record), changed });
      else if (!changed) printLine(stdout, `Key ${record.prefix} is on plan ${plan} already.`);
      else printLine(stdout, `Moved ${record.prefix} from plan ${previousPlanId} to ${plan}. It holds ${since}.`);
    });

  keys
    .command('revoke')
    .description('refuse a key for good, from the next request on')
    .argument('<prefix>', PREFIX_HELP)
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  catalog keys revoke svc_1a2B3c4D')
    .action(async (prefix: string, { json }: { json?: boolean }) => {
      const { record, since } = await withDatabase(async (db) => ({
        record: await revokeKey(db, toPrefix(prefix)),
        since: await makeEffective(context, db),
      }));
      if (json) printJson(stdout, toJson(record));
      else printLine(stdout, `Revoked ${record.prefix}. It is refused ${since}, for good.`);
    });
};

/** Whoever has only the leaked key at hand must not be held up; and the rest of it must not be repeated. */
function toPrefix(prefixOrKey: string): string {
  return prefixOrKey.trim().slice(0, 'svc_'.length + 8);
}

/** Makes the servers see a change that is committed. @returns since when they do, in words */
async function makeEffective(context: CommandContext, db: Knex): Promise<string> {
  return (await endCachedRecords(context, db)) ? 'from the next request on' : 'within moments';
}

function toJson(record: KeyRecord): Record<string, unknown> {
  return {
    key_prefix: record.prefix,
    developer_id: record.developerId,
    plan_id: record.planId,
    label: record.label,
    created_at: record.createdAt,
    last_used_at: record.lastUsedAt,
    revoked_at: record.revokedAt,
  };
}
