import type { Command } from 'commander';
import { readQuotaCounters } from '../../admission/charge/redis.js';
import { findDeveloper } from '../../developers/developers.js';
import { listKeys } from '../../keys/keys.js';
import { OperatorError } from '../../errors.js';
import { listPlans, type Plan } from '../../limits/plans.js';
import { QUOTA_NAMES, toQuota, type Quota } from '../../limits/quotas.js';
import { positiveInteger } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { addJsonCommand, report } from '../output/report.js';
import { table } from '../output/table.js';

/** A quota and what was counted, which exceeds the limit if the plan was lowered since. */
interface UsedQuota extends Quota {
  readonly used: number;
}

interface Usage {
  readonly plan: Plan;
  readonly quotas: readonly UsedQuota[];
}

/** `catalog developers quotas` */
export function registerQuotas(developers: Command, { stdout, withDatabase, withRedis }: CommandContext): void {
  addJsonCommand(developers, 'quotas', 'catalog developers quotas 1')
    .description('Show how much of the current minute and day each plan of a developer has used. Needs REDIS_URL.')
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (developer: number, { json }: { json?: boolean }) => {
      const plans = await withDatabase(async (db) => {
        await findDeveloper(db, developer);
        const used = new Set((await listKeys(db, developer)).map(({ planId }) => planId));
        return (await listPlans(db)).filter(({ id }) => used.has(id));
      });
      if (plans.length === 0) throw new OperatorError(`Developer ${developer} has no keys.`);
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
          'REDIS_URL is not set, so only the server process has the counts. The developer can read them in the RateLimit header of each response.',
        );
      }
      const rows = usages.flatMap(({ plan, quotas }) => quotas.map((quota) => ({ plan, ...quota })));
      const lines = table(rows, {
        plan: ({ plan }) => plan.id,
        per: ({ name }) => name,
        used: ({ used }) => used,
        remaining: ({ remaining }) => remaining,
        limit: ({ limit }) => limit,
        'resets in (s)': ({ resetSeconds }) => resetSeconds,
      });
      report(stdout, json, { developerId: developer, plans: usages.map(toDocument) }, lines);
    });
}

function toDocument({ plan, quotas }: Usage): object {
  const quotasByName = quotas.map(({ name, used, limit, remaining, resetSeconds }) => [
    name,
    { used, remaining, limit, resetsInSeconds: resetSeconds },
  ]);
  return { plan: plan.id, ...(Object.fromEntries(quotasByName) as object) };
}
