import type { Warning } from '../../platform/postgres/connections/connection-budget.js';
import { CONSEQUENCES, type Component, type ComponentState } from '../../platform/telemetry/health.js';

/** The state of the service that readiness follows from. */
export interface Readiness {
  readonly isStopping: boolean;
  /** The components that are configured. */
  readonly states: ReadonlyMap<Component, ComponentState>;
  /** Warnings, which do not change the readiness. */
  readonly warnings: readonly Warning[];
}

/** A reason why the service is not fully available. */
interface Reason {
  /** For programs; never renamed. */
  readonly code: `${Component}_lost` | 'shutting_down';
  readonly detail: string;
}

export interface ReadinessReport {
  /** Whether requests should be sent here. */
  readonly isReady: boolean;
  readonly reasons: readonly Reason[];
  readonly warnings: readonly Warning[];
  readonly checks: Readonly<Partial<Record<Component, ComponentState>>>;
}

const SHUTTING_DOWN: Reason = {
  code: 'shutting_down',
  detail: 'The service is shutting down. It still answers for a while. Send it no more requests.',
};

/**
 * Distinguishes "degraded" from "not ready". A server without its database can answer nothing, and should get no
 * requests. Without another component it answers everything, at a cost. A balancer that removes servers without Redis
 * would remove all of them.
 */
export function reportReadiness({ isStopping, states, warnings }: Readiness): ReadinessReport {
  const lost = [...states].filter(([, state]) => state === 'lost').map(([component]) => component);
  return {
    isReady: !isStopping && !lost.includes('database'),
    reasons: [
      ...(isStopping ? [SHUTTING_DOWN] : []),
      ...lost.map((component): Reason => ({ code: `${component}_lost`, detail: CONSEQUENCES[component] })),
    ],
    warnings,
    checks: Object.fromEntries(states),
  };
}
