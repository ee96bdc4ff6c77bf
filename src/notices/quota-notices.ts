import type { Knex } from 'knex';
import { LRUCache } from 'lru-cache';
import type { Plan } from '../limits/plans.js';
import type { Quota } from '../limits/quotas.js';

/** The part of a day's quota that has a notice before its end, in percent. */
const NEARLY = 80;

/** The most notices of windows that have not ended which are remembered. Others are recorded again, to no effect. */
const MOST_NOTED = 50_000;

/** The most notices that wait for the database. Another quota is noted by a later request that it is charged. */
const MOST_WAITING = 10_000;

/** How much earlier than it was computed the window of a quota may have begun, in seconds: its end was rounded up. */
const SLACK_SECONDS = 10;

/** A developer who has used a part of a day's quota. */
interface ReachedQuota {
  readonly developerId: number;
  readonly planId: string;
  readonly percent: number;
  readonly quota: Quota;
  /** When its window ends, in milliseconds since 1970. */
  readonly resetsAt: number;
}

/**
 * Notes which developers have used 80 or 100 % of a day's quota, by what their requests were charged. They are recorded
 * beside the requests, once for each window and at most once a day.
 */
export class QuotaNotices {
  readonly #noted = new LRUCache<string, true>({ max: MOST_NOTED });
  readonly #waiting: ReachedQuota[] = [];

  /** Notices that were left out because too many waited. */
  lost = 0;

  /** @param mostWaiting - for tests */
  constructor(private readonly mostWaiting = MOST_WAITING) {}

  /** Notes where the quotas of a request stand, which takes no time unless one is nearly used up. */
  note({ developerId, plan }: { readonly developerId: number; readonly plan: Plan }, quotas: readonly Quota[]): void {
    for (const quota of quotas) {
      const { name, limit, remaining, resetSeconds } = quota;
      if (name !== 'day' || (limit - remaining) * 100 < limit * NEARLY) continue;
      const percent = remaining === 0 ? 100 : NEARLY;
      const subject = `${developerId} ${plan.id} ${percent}`;
      if (this.#noted.has(subject)) continue;
      if (this.#waiting.length >= this.mostWaiting) {
        this.lost += 1;
        continue;
      }
      this.#noted.set(subject, true, { ttl: resetSeconds * 1_000 });
      const resetsAt = Date.now() + resetSeconds * 1_000;
      this.#waiting.push({ developerId, planId: plan.id, percent, quota, resetsAt });
    }
  }

  /**
   * Records one of the noted quotas, unless another server has done so. It waits for the next call if that fails.
   *
   * @returns whether more wait
   * @throws the database's error
   */
  async save(db: Knex): Promise<boolean> {
    const [reached] = this.#waiting;
    if (reached === undefined) return false;
    const { developerId, planId, percent, quota, resetsAt } = reached;
    await db.raw(
      `insert into notices (type, subject, data)
       select 'quota.reached', :subject, cast(:data as jsonb)
        where not exists (
          select from notices
           where subject = :subject and occurred_at > now() - make_interval(secs => :sinceSeconds))
       on conflict do nothing`,
      {
        subject: `quota.reached ${developerId} ${planId} ${percent}`,
        data: JSON.stringify({
          developer_id: developerId,
          plan_id: planId,
          percent,
          used: quota.limit - quota.remaining,
          limit: quota.limit,
          resets_at: new Date(resetsAt).toISOString(),
        }),
        sinceSeconds: quota.windowSeconds - (resetsAt - Date.now()) / 1_000 + SLACK_SECONDS,
      },
    );
    this.#waiting.shift();
    return this.#waiting.length > 0;
  }
}
