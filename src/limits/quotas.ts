import type { Plan } from './plans.js';

/** The quotas of a plan, by the names that clients see. */
export type QuotaName = 'minute' | 'day';

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

/** The order in which quotas are listed everywhere. */
export const QUOTA_NAMES = ['minute', 'day'] as const satisfies readonly QuotaName[];

export const WINDOW_SECONDS: Readonly<Record<QuotaName, number>> = { minute: 60, day: 86_400 };

/** @returns what a plan allows in a window */
export function limitOf(plan: Plan, name: QuotaName): number {
  return name === 'minute' ? plan.requestsPerMinute : plan.requestsPerDay;
}

/** @returns where a caller with this count stands; a window that has just ended counts as none */
export function toQuota(name: QuotaName, plan: Plan, count: Count): Quota {
  const limit = limitOf(plan, name);
  const windowSeconds = WINDOW_SECONDS[name];
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
