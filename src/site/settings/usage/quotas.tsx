import type { VNode } from 'preact';
import type { QuotaState } from '../../../admission/charge/limiter.js';
import type { Plan } from '../../../limits/plans.js';
import type { Quota } from '../../../limits/quotas.js';
import { Notice } from '../../layout/components.js';
import { formatNumber } from '../../layout/values.js';

interface QuotasProps {
  readonly states: readonly { readonly plan: Plan; readonly state: QuotaState }[];
}

/** What is left of each plan's limits: a meter and the same in words. */
export function Quotas({ states }: QuotasProps): VNode {
  return (
    <>
      {states.some(({ state }) => state.countedIn === 'process') && (
        <Notice tone="info">
          These numbers come from a single server process. Others count separately, so your total usage may be higher.
        </Notice>
      )}
      <ul class="card-grid quotas">
        {states.map(({ plan, state }) => (
          <li key={plan.id} class="card">
            <h3>{plan.name}</h3>
            {state.quotas.map((quota) => (
              <QuotaMeter key={quota.name} plan={plan} quota={quota} />
            ))}
          </li>
        ))}
      </ul>
    </>
  );
}

/** The parts of a limit at which the meter changes its colour. */
const HIGH = { low: 0.8, high: 0.95 };

function QuotaMeter({
  plan,
  quota: { name, limit, remaining, resetSeconds },
}: {
  readonly plan: Plan;
  readonly quota: Quota;
}): VNode {
  const id = `${plan.id}-${name}`;
  const used = limit - remaining;
  return (
    <div class="meter-row">
      <label for={id}>{name === 'minute' ? 'Per minute' : 'Per day'}</label>
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
        {formatNumber(used)} used
      </meter>
      <span class="meter-text">
        {formatNumber(remaining)} of {formatNumber(limit)} left
        {used > 0 && `, resets in ${duration(resetSeconds)}`}
      </span>
    </div>
  );
}

/** @returns a time in its two largest units, rounded up: `34 s`, `5 h 12 min` */
function duration(seconds: number): string {
  if (seconds <= 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
