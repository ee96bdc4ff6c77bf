import type { Dependency, DependencyState, Health } from '../../platform/telemetry/health.js';

/** A reason why the service is not fully available. */
interface Reason {
  /** For programs; never renamed. */
  readonly code: `${Dependency}_lost` | 'shutting_down';
  readonly detail: string;
}

export interface ReadinessReport {
  /** Whether requests should be sent here. */
  readonly isReady: boolean;
  readonly reasons: readonly Reason[];
  readonly checks: Readonly<Partial<Record<Dependency, DependencyState>>>;
}

const SHUTTING_DOWN: Reason = {
  code: 'shutting_down',
  detail: 'This server is shutting down. It keeps serving for a short time; send new requests elsewhere.',
};

/**
 * Distinguishes "degraded" from "not ready". A server without its database can answer nothing, and should get no
 * requests. Without another dependency it answers everything, at a cost. A balancer that removes servers without Redis
 * would remove all of them.
 */
export function reportReadiness({ components, lost, outages }: Health, isStopping: boolean): ReadinessReport {
  return {
    isReady: !isStopping && !lost.includes('database'),
    reasons: [
      ...(isStopping ? [SHUTTING_DOWN] : []),
      ...lost.map((dependency): Reason => ({ code: `${dependency}_lost`, detail: outages[dependency].consequence })),
    ],
    checks: Object.fromEntries([...components].map(([dependency, { state }]) => [dependency, state])),
  };
}
