import { readQuotaCounters } from '../../admission/charge/redis-charges.js';
import { listKeys } from '../../keys/keys.js';
import { OperatorError } from '../../errors.js';
import { listPlans, type Plan } from '../../limits/plans.js';
import { QUOTA_NAMES, toQuota, type Quota } from '../../limits/quotas.js';
import { addJsonCommand } from '../add-json-command.js';
import { positiveInteger } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { printJson, printTable } from '../output.js';

/** A quota, and what was counted: more than its limit, when the plan was lowered since. */
interface UsedQuota extends Quota {
  readonly used: number;
}

interface Usage {
  readonly plan: Plan;
  readonly quotas: readonly UsedQuota[];
}

export const registerUsage: RegisterCommand = (program, { stdout, withDatabase, withRedis }) => {
  addJsonCommand(program, 'usage', 'catalog usage --developer 1')
    .description('what a developer has used of the current minute and day, on each plan that the keys are tied to')
    .requiredOption('--developer <id>', 'whose requests', positiveInteger)
    .action(async ({ developer, json }: { developer: number; json?: boolean }) => {
      const plans = await withDatabase(async (db) => {
        const used = new Set((await listKeys(db, developer)).map(({ planId }) => planId));
        return (await listPlans(db)).filter(({ id }) => used.has(id));
      });
      if (plans.length === 0) throw new OperatorError(`There is no developer ${developer} with a key.`);
      const usages = await withRedis((redis) =>
        Promise.all(
          plans.map(async (plan): Promise<Usage> => {
            const counts = await readQuotaCounters(redis, developer, plan);
            const quotas = QUOTA_NAMES.map((name) => ({
              ...toQuota(name, plan, counts[name]),
              used: counts[name]?.requests ?? 0,
            }));
            return { plan, quotas };
          }),
        ),
      );
      if (usages === undefined) {
        throw new OperatorError(
          'Without REDIS_URL the counts live in the server process: the RateLimit field of each answer to the developer tells them.',
        );
      }
      if (json) printJson(stdout, { developer_id: developer, plans: usages.map(toJson) });
      else {
        const rows = usages.flatMap(({ plan, quotas }) => quotas.map((quota) => ({ plan, ...quota })));
        printTable(stdout, rows, {
          plan: ({ plan }) => plan.id,
          per: ({ name }) => name,
          used: ({ used }) => used,
          left: ({ remaining }) => remaining,
          limit: ({ limit }) => limit,
          'resets in (s)': ({ resetSeconds }) => resetSeconds,
        });
      }
    });
};

function toJson({ plan, quotas }: Usage): unknown {
  const quotasByName = quotas.map(({ name, used, limit, remaining, resetSeconds }) => [
    name,
    { used, remaining, limit, resets_in_seconds: resetSeconds },
  ]);
  return { plan: plan.id, ...Object.fromEntries(quotasByName) };
}
