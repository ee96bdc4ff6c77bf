import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { QuotaReader } from '../../admission/charge/limiter.js';
import { webhookOf } from '../../config/config.js';
import { listPlans } from '../../limits/plans.js';
import { WINDOW_SECONDS } from '../../limits/quotas.js';
import {
  claimNotice,
  countPendingNotices,
  giveUpNotices,
  markDelivered,
  type ClaimedNotice,
} from '../../notices/outbox.js';
import { recordKeyNotices, recordQuotaNotices, type ReachedQuota } from '../../notices/record-notices.js';
import { messageId, sendNotice, type Webhook } from '../../notices/webhook.js';
import { recurring } from '../../platform/async/recurring.js';
import { findNearDayQuota } from '../../usage/day-quotas.js';
import type { CloseStack } from '../../platform/process/close-stack.js';
import type { ServiceOptions } from '../options.js';
import { attempt } from './records.js';

/** The interval at which notices are recorded and sent, in milliseconds. */
const INTERVAL_MS = 10_000;

/** Rounds from one reading of the quotas to the next: about a minute. */
const ROUNDS_PER_QUOTAS = 6;

/** The most notices that one round sends. The next round continues. */
const NOTICES_PER_ROUND = 50;

/** The parts of a day's quota that have a notice, in percent, the largest first. */
const QUOTA_PERCENTS = [100, 80] as const;

/** Notices that were not delivered. */
export interface NoticeCounts {
  /** Of all servers, when this one last looked. */
  readonly pending: number;
  /** By this process. */
  readonly givenUp: number;
}

/**
 * Starts to record what the operator should know in the database, and to send it. No request waits for it.
 *
 * @param quotas - reads what developers have used
 * @param opened - stops it when it is closed
 * @returns undefined without `NOTIFY_URL`
 */
export function startNotices(
  { config, log, overrides }: Pick<ServiceOptions, 'config' | 'log' | 'overrides'>,
  db: Knex,
  quotas: QuotaReader,
  opened: CloseStack,
): NoticeCounts | undefined {
  const webhook = webhookOf(config);
  if (webhook === undefined) return undefined;
  const counts = { pending: 0, givenUp: 0 };
  const stopping = new AbortController();
  let rounds = 0;
  const work = recurring(async () => {
    const isForQuotas = rounds % ROUNDS_PER_QUOTAS === 0;
    rounds += 1;
    await attempt(log, 'could not record notices; trying again later', async () => {
      await recordKeyNotices(db);
      if (isForQuotas) await recordQuotaNotices(db, await readReachedQuotas(db, quotas));
    });
    await attempt(log, 'could not send notices; trying again later', () =>
      sendNotices(db, webhook, log, counts, stopping.signal),
    );
  }, overrides?.noticeIntervalMs ?? INTERVAL_MS);
  opened.add(work, (it) => {
    stopping.abort();
    return it.stop();
  });
  return counts;
}

/** Sends what is due, and counts what was not delivered. */
async function sendNotices(
  db: Knex,
  webhook: Webhook,
  log: Logger,
  counts: { pending: number; givenUp: number },
  stopping: AbortSignal,
): Promise<void> {
  for (const notice of await giveUpNotices(db)) {
    counts.givenUp += 1;
    log.error(describe(notice), 'a notice was given up: its receiver did not accept it');
  }
  for (let sent = 0; sent < NOTICES_PER_ROUND && !stopping.aborted; sent += 1) {
    const notice = await claimNotice(db);
    if (notice === undefined) break;
    const delivery = await sendNotice(webhook, notice, { stopping });
    if (delivery.kind === 'failed') {
      log.warn({ ...describe(notice), reason: delivery.reason }, 'a notice could not be sent; trying again');
      // The receiver is likely to refuse the others too.
      break;
    }
    await markDelivered(db, notice);
  }
  counts.pending = await countPendingNotices(db);
}

/** @returns the members of a notice for the log */
function describe(notice: ClaimedNotice): object {
  return { notice: messageId(notice), type: notice.type, attempts: notice.attempt };
}

/** @returns the day's quotas that developers have used to one of the parts which have a notice */
async function readReachedQuotas(db: Knex, quotas: QuotaReader): Promise<readonly ReachedQuota[]> {
  const near = await findNearDayQuota(db, Math.min(...QUOTA_PERCENTS) / 100);
  if (near.length === 0) return [];
  const plans = new Map((await listPlans(db)).map((plan) => [plan.id, plan]));
  const reached: ReachedQuota[] = [];
  for (const { developerId, planId } of near) {
    const plan = plans.get(planId);
    if (plan === undefined) continue;
    const state = await quotas.read({ developerId, plan });
    for (const { name, limit, remaining, resetSeconds } of state.quotas) {
      const used = limit - remaining;
      const percent = QUOTA_PERCENTS.find((each) => used * 100 >= limit * each);
      if (name !== 'day' || percent === undefined) continue;
      const elapsedSeconds = WINDOW_SECONDS.day - resetSeconds;
      const resetsAt = new Date(Date.now() + resetSeconds * 1000).toISOString();
      reached.push({ developerId, planId, percent, used, limit, elapsedSeconds, resetsAt });
    }
  }
  return reached;
}
