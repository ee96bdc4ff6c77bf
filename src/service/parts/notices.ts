import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { webhookOf } from '../../config/config.js';
import {
  claimNotice,
  countPendingNotices,
  giveUpNotices,
  markDelivered,
  type ClaimedNotice,
} from '../../notices/outbox.js';
import { QuotaNotices } from '../../notices/quota-notices.js';
import { recordExpiringKeys } from '../../notices/record-notices.js';
import { messageId, sendNotice, type Webhook } from '../../notices/webhook.js';
import type { Jobs } from '../../platform/process/jobs.js';
import type { ServiceOptions } from '../options.js';
import { savingJob } from './jobs.js';

/** The interval at which notices are sent, in milliseconds. */
const SEND_INTERVAL_MS = 10_000;

/** The interval at which keys are looked up that expire in days, in milliseconds. */
const EXPIRY_INTERVAL_MS = 300_000;

/** Notices that were not delivered. */
export interface NoticeCounts {
  /** Of all servers, when this one last looked. */
  readonly pending: number;
  /** By this process. */
  readonly givenUp: number;
}

/** The notices of a server. */
export interface Notices {
  readonly counts: NoticeCounts;
  readonly quotas: QuotaNotices;
}

/**
 * Starts to record notices to the operator in the database, and to send them. No request waits for them.
 *
 * @returns undefined without `NOTIFY_URL`
 */
export function startNotices({ config, log }: Pick<ServiceOptions, 'config' | 'log'>, jobs: Jobs): Notices | undefined {
  const webhook = webhookOf(config);
  if (webhook === undefined) return undefined;
  const quotas = new QuotaNotices();
  const counts = { pending: 0, givenUp: 0 };
  jobs.start({
    name: 'record expiring keys',
    intervalMs: EXPIRY_INTERVAL_MS,
    isShared: true,
    step: recordExpiringKeys,
  });
  jobs.start(savingJob('record used-up quotas', quotas, log, 'the notices of used-up quotas'));
  jobs.start({
    name: 'send notices',
    intervalMs: SEND_INTERVAL_MS,
    step: (db, _, stopping) => sendNext(db, webhook, log, counts, stopping),
  });
  return { counts, quotas };
}

/** Sends the next notice that is due, and counts failures. @returns whether another notice may be due */
async function sendNext(
  db: Knex,
  webhook: Webhook,
  log: Logger,
  counts: { pending: number; givenUp: number },
  stopping: AbortSignal,
): Promise<boolean> {
  for (const notice of await giveUpNotices(db)) {
    counts.givenUp += 1;
    log.error(describe(notice), 'a notice was given up: its receiver did not accept it');
  }
  const notice = await claimNotice(db);
  if (notice !== undefined) {
    const delivery = await sendNotice(webhook, notice, { stopping });
    if (delivery.kind === 'delivered') {
      await markDelivered(db, notice);
      return true;
    }
    // The receiver is likely to refuse the others too.
    log.warn({ ...describe(notice), reason: delivery.reason }, 'a notice could not be sent; trying again');
  }
  counts.pending = await countPendingNotices(db);
  return false;
}

/** @returns the members of a notice for the log */
function describe(notice: ClaimedNotice): object {
  return { notice: messageId(notice), type: notice.type, attempts: notice.attempt };
}
