import type { Readiness } from '../../http/probes/readiness.js';
import { OUTAGES } from '../../platform/telemetry/health.js';
import type { Tone } from '../layout/components.js';

/** The state of the service, for people who call it. */
export interface ServiceStatus {
  readonly tone: Tone;
  readonly summary: string;
  /** What works and what does not, a sentence or two for each fault. */
  readonly details: readonly string[];
}

const RESTARTING = 'One server is restarting. All calls work.';

/** Describes to people who call the service what `/readyz` reports to operators. */
export function describeStatus({ isStopping, states }: Readiness): ServiceStatus {
  const lost = [...states].flatMap(([dependency, state]) => (state === 'lost' ? [dependency] : []));
  const details = new Set([...(isStopping ? [RESTARTING] : []), ...lost.map((each) => OUTAGES[each].forCallers)]);
  if (lost.includes('database')) return { tone: 'danger', summary: 'Unavailable', details: [...details] };
  if (details.size > 0) return { tone: 'warning', summary: 'Degraded', details: [...details] };
  return { tone: 'ok', summary: 'All systems operational', details: [] };
}
