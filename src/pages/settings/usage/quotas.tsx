import type { VNode } from 'preact';
import type { QuotaState } from '../../../admission/charge/limiter.js';
import { listPlansOf } from '../../../keys/key-summary.js';
import type { Plan } from '../../../limits/plans.js';
import { QUOTAS, type Quota } from '../../../limits/quotas.js';
import { formatCount } from '../../../platform/text/count.js';
import type { SiteParts } from '../../parts/context.js';

/** A plan of a developer, and what is left of its limits. */
export interface PlanState extends QuotaState {
  readonly plan: Plan;
}

/** Reads what is left of the limits of each plan that applies to a developer, without charging a request. */
export async function readPlanStates(
  { db, limiter }: Pick<SiteParts, 'db' | 'limiter'>,
  developerId: number,
): Promise<readonly PlanState[]> {
  const plans = await listPlansOf(db, developerId);
  return Promise.all(plans.map(async (plan) => ({ plan, ...(await limiter.read({ developerId, plan })) })));
}

/** How much of each plan's limits is used: a meter and the same in words. */
export function Quotas({ states }: { readonly states: readonly PlanState[] }): VNode {
  return (
    <ul class="quotas">
      {states.map(({ plan, quotas }) => (
        <li key={plan.id} class="card">
          <h3>{plan.name} plan</h3>
          {quotas.map((quota) => (
            <QuotaMeter key={quota.name} plan={plan} quota={quota} />
          ))}
        </li>
      ))}
    </ul>
  );
}

/** The parts of a limit at which the meter changes its colour. */
const HIGH = { low: 0.8, high: 0.95 };

/** @returns the part of a quota that is used, from 0 to 1, where it is so much that its owner should act */
export function highShareOf(quota: Quota): number | undefined {
  const share = usedOf(quota) / quota.limit;
  return share >= HIGH.low ? share : undefined;
}

/** @returns how many requests are charged to a quota */
function usedOf({ limit, remaining }: Quota): number {
  return limit - remaining;
}

function QuotaMeter({ plan, quota }: { readonly plan: Plan; readonly quota: Quota }): VNode {
  const { name, limit, resetSeconds } = quota;
  const id = `${plan.id}-${name}`;
  const used = usedOf(quota);
  return (
    <div class="meter-row">
      <label for={id}>
        {QUOTAS[name].label}
        <span class="visually-hidden"> on the {plan.name} plan</span>
      </label>
      <meter
        class="meter"
        id={id}
        min={0}
        max={limit}
        low={Math.floor(limit * HIGH.low)}
        high={Math.floor(limit * HIGH.high)}
        optimum={0}
        value={used}
      >
        {formatCount(used)} used
      </meter>
      <span class="muted small">
        {formatCount(used)} of {formatCount(limit)} requests
        {used > 0 && `; resets ${resetTime(resetSeconds)}`}
      </span>
    </div>
  );
}

/** @returns when a quota resets: `in 34 s`, or `at 18:40 UTC, in 5 h 12 min` */
export function resetTime(seconds: number): string {
  if (seconds <= 120) return `in ${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  const duration = [hours > 0 ? `${hours} h` : [], rest > 0 ? `${rest} min` : []].flat().join(' ');
  return `at ${new Date(Date.now() + seconds * 1000).toISOString().slice(11, 16)} UTC, in ${duration}`;
}
