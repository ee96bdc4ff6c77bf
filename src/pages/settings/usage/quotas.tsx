import type { VNode } from 'preact';
import type { QuotaState } from '../../../admission/charge/limiter.js';
import { listPlansOf } from '../../../keys/key-summary.js';
import type { Plan } from '../../../limits/plans.js';
import { QUOTAS, type Quota } from '../../../limits/quotas.js';
import { formatCount } from '../../../platform/text/count.js';
import type { SiteParts } from '../../parts/context.js';

/** A plan of a developer, and the rest of its limits. */
export interface PlanState extends QuotaState {
  readonly plan: Plan;
}

/** Reads the rest of the limits of each plan that applies to a developer, without charging a request. */
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

/**
 * @param seconds - how long until then, at most a day
 * @param now - milliseconds since 1970
 * @returns when a quota resets: `in 34 s`, `today at 18:40 UTC (in 5 h 12 min)` or `tomorrow at 03:53 UTC (in 24 h)`
 */
export function resetTime(seconds: number, now = Date.now()): string {
  if (seconds <= 120) return `in ${seconds}${NO_BREAK}s`;
  const minutes = Math.ceil(seconds / 60);
  const parts = [`${Math.floor(minutes / 60)} h`, `${minutes % 60} min`].filter((part) => !part.startsWith('0 '));
  const end = new Date(now + seconds * 1_000);
  const day = end.getUTCDate() === new Date(now).getUTCDate() ? 'today' : 'tomorrow';
  const duration = parts.join(' ').replaceAll(' ', NO_BREAK);
  return `${day} at ${end.toISOString().slice(11, 16)}${NO_BREAK}UTC (in ${duration})`;
}

/** A space that no line ends at. */
const NO_BREAK = '\u00A0';
