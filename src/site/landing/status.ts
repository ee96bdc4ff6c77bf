import { reportReadiness, type Readiness, type ReadinessReport } from '../../http/probes/readiness.js';
import type { Tone } from '../layout/components.js';

/** The state of the service, for people who call it. */
export interface ServiceStatus {
  readonly tone: Tone;
  readonly summary: string;
  /** What works and what does not, a sentence or two for each fault. */
  readonly details: readonly string[];
}

/** What each fault means for callers. `/readyz` describes the same faults to operators. */
const CONSEQUENCES: Readonly<Record<ReadinessReport['reasons'][number]['code'], string>> = {
  database_lost:
    'Calls that read the catalogue fail with 503 at the moment: wait the number of seconds in Retry-After, then try again. Your keys ' +
    'are not affected, but you cannot sign in or change them until the service has recovered.',
  redis_lost: 'All calls work. Until the service has recovered, rate limits may count fewer requests than you send.',
  announcements_lost: 'All calls work, but may take a little longer.',
  replica_lost: 'All calls work, but may take a little longer.',
  shutting_down: 'One server is restarting. All calls work.',
};

/** Describes what `/readyz` reports to people who call the service. */
export function describeStatus(readiness: Readiness): ServiceStatus {
  const { reasons } = reportReadiness(readiness);
  const details = [...new Set(reasons.map(({ code }) => CONSEQUENCES[code]))];
  if (reasons.some(({ code }) => code === 'database_lost')) return { tone: 'danger', summary: 'Unavailable', details };
  if (reasons.length > 0) return { tone: 'warning', summary: 'Degraded', details };
  return { tone: 'ok', summary: 'All systems operational', details };
}
