import type { Command } from 'commander';
import { readQuotaCounters } from '../../admission/charge/redis.js';
import { findDeveloper } from '../../developers/developers.js';
import { listKeys } from '../../keys/keys.js';
import { OperatorError } from '../../errors.js';
import { listPlans } from '../../limits/plans.js';
import { toQuota } from '../../limits/quotas.js';
import { DEVELOPER } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { addJsonCommand } from '../output/report.js';
import { table } from '../output/table.js';

/** `catalog developers quotas` */
export function registerQuotas(developers: Command, context: CommandContext): void {
  const { withDatabase, withRedis } = context;
  addJsonCommand(developers, 'quotas', 'catalog developers quotas 1')
    .description('Show how much of the current minute and day each plan of a developer has used. Needs REDIS_URL.')
    .argument(...DEVELOPER)
    .reports(context, async (developer: number) => {
      const plans = await withDatabase(async (db) => {
        await findDeveloper(db, developer);
        const used = new Set((await listKeys(db, developer)).map(({ planId }) => planId));
        return (await listPlans(db)).filter(({ id }) => used.has(id));
      });
      if (plans.length === 0) throw new OperatorError(`Developer ${developer} has no keys.`);
      const counts = await withRedis((redis) =>
        Promise.all(plans.map((plan) => readQuotaCounters(redis, developer, plan))),
      );
      if (counts === undefined) {
        throw new OperatorError('REDIS_URL is not set, so only the server process has the counts.', {
          advice: 'The developer can read them in the RateLimit header of each response.',
        });
      }
      const rows = plans.flatMap((plan, place) =>
        (counts[place] ?? []).map(([name, count]) => {
          const { remaining, limit, resetSeconds: resetsInSeconds } = toQuota(name, plan, count);
          // More than the limit may be used if the plan was lowered since.
          return { plan: plan.id, per: name, used: count?.requests ?? 0, remaining, limit, resetsInSeconds };
        }),
      );
      const lines = table(rows, {
        plan: ({ plan }) => plan,
        per: ({ per }) => per,
        used: ({ used }) => used,
        remaining: ({ remaining }) => remaining,
        limit: ({ limit }) => limit,
        'resets in (s)': ({ resetsInSeconds }) => resetsInSeconds,
      });
      return [{ developerId: developer, quotas: rows }, lines];
    });
}
