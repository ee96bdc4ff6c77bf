import { reportReadiness, type Readiness } from '../../http/probes/readiness.js';
import type { Tone } from '../layout/components.js';

/** The state of the service, for people. */
export interface ServiceStatus {
  readonly tone: Tone;
  /** A few words. */
  readonly summary: string;
  /** What is not as it should be, a sentence each. */
  readonly details: readonly string[];
}

/** Says in words what `/readyz` reports. */
export function reportStatus(readiness: Readiness): ServiceStatus {
  const { isReady, reasons } = reportReadiness(readiness);
  const details = reasons.map(({ detail }) => detail);
  if (!isReady) return { tone: 'danger', summary: 'Not ready', details };
  if (reasons.length > 0) return { tone: 'warning', summary: 'Degraded', details };
  return { tone: 'ok', summary: 'All systems operational', details };
}
