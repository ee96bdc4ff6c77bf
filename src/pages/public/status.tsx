import type { Health } from '../../platform/telemetry/health.js';
import { Notice, type Tone } from '../parts/content/components.js';
import type { PageRouter } from '../parts/context.js';
import { publicPage } from '../parts/frame/page.js';
import { cached } from '../../platform/async/cached.js';
import type { PublicParts } from './context.js';

export const STATUS_PATH = '/status';

/** How long the page shows the same status, in milliseconds. */
const LIFETIME_MS = 1_000;

/** The state of the service, for people who call it: a sentence or two for each fault. */
export interface ServiceStatus {
  readonly tone: Tone;
  readonly summary: string;
  readonly details: readonly string[];
}

/** @returns the report of `/readyz` in the words of people who call the service */
export function statusForCallers({ lost, outages }: Health): ServiceStatus {
  // Other losses make no difference then.
  if (lost.includes('database'))
    return { tone: 'danger', summary: 'Unavailable', details: [outages.database.forCallers] };
  const details = [...new Set(lost.map((each) => outages[each].forCallers))];
  if (details.length > 0) return { tone: 'warning', summary: 'Degraded', details };
  return { tone: 'ok', summary: 'All systems operational', details };
}

/** Adds the status of the service, `/status`. It needs no database. */
export function addStatusPage(router: PageRouter, { health, site }: PublicParts): void {
  const status = cached(() => {
    const { tone, summary, details } = statusForCallers(health);
    return publicPage(
      site,
      { title: 'Status', description: 'Whether the Catalog Lookup Service works at the moment.' },
      <div class="container">
        <div class="column">
          <h1>Status</h1>
          <Notice tone={tone}>
            <strong>{summary}.</strong> {details.length === 0 && 'All calls and pages work normally.'}
            {details.join(' ')}
          </Notice>
          <p class="muted">
            Reload the page for the current status. Programs can read it as JSON from <a href="/readyz">/readyz</a>,
            which returns 200 while calls are served.
          </p>
        </div>
      </div>,
    );
  }, LIFETIME_MS);
  router.get(STATUS_PATH, async (ctx) => (await status()).send(ctx, 'no-cache'));
}
