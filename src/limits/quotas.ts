import { formatCount } from '../platform/text/count.js';
import type { Plan } from './plans.js';

interface QuotaKind {
  /** The member of a plan with the number of requests. */
  readonly limit: keyof Omit<Plan, 'id' | 'name' | 'commercialUse'>;
  readonly windowSeconds: number;
  /** How pages call the limit. A window begins at any time, so it is not the day of a calendar. */
  readonly label: string;
}

/** The quotas of a plan, by the names that clients see, in the order in which they are listed everywhere. */
export const QUOTAS = {
  minute: { limit: 'requestsPerMinute', windowSeconds: 60, label: 'Per minute' },
  day: { limit: 'requestsPerDay', windowSeconds: 86_400, label: 'Per 24 hours' },
} as const satisfies Readonly<Record<string, QuotaKind>>;

export type QuotaName = keyof typeof QUOTAS;

/** Where a client stands with a limit. */
export interface LimitState {
  /** As clients see it. */
  readonly name: string;
  readonly limit: number;
  /** The window, in seconds. It begins with the first request after the last one ended. */
  readonly windowSeconds: number;
  readonly remaining: number;
  /** Whole seconds until the window ends, rounded up. */
  readonly resetSeconds: number;
}

/** Where a caller stands with one quota. */
export interface Quota extends LimitState {
  readonly name: QuotaName;
}

/** A counter as it was read; undefined when nothing was counted in this window yet. */
export type Count = { readonly requests: number; readonly msLeft: number } | undefined;

export const QUOTA_NAMES = Object.keys(QUOTAS) as readonly QuotaName[];

/** @returns the number of requests that a plan allows in a window */
export function limitOf(plan: Plan, name: QuotaName): number {
  return plan[QUOTAS[name].limit];
}

/** @returns the limits of a plan: `60 requests per minute, 1,000 requests per day` */
export function describeLimits(plan: Plan): string {
  return QUOTA_NAMES.map((name) => `${formatCount(limitOf(plan, name))} requests per ${name}`).join(', ');
}

/** @returns where a caller with this count stands; a window that has just ended counts as empty */
export function toQuota(name: QuotaName, plan: Plan, count: Count): Quota {
  const limit = limitOf(plan, name);
  const windowSeconds = QUOTAS[name].windowSeconds;
  const current = count !== undefined && count.msLeft > 0 ? count : undefined;
  return {
    name,
    limit,
    windowSeconds,
    remaining: Math.max(0, limit - (current?.requests ?? 0)),
    // A clock that was changed meanwhile must not make a window longer.
    resetSeconds: current === undefined ? windowSeconds : Math.min(windowSeconds, Math.ceil(current.msLeft / 1000)),
  };
}

/** @returns the quotas that have no room for a request */
export function exhausted(quotas: readonly Quota[]): readonly Quota[] {
  return quotas.filter(({ remaining }) => remaining === 0);
}
