import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { statsOf } from '../../../api/getStats.js';
import { readCatalogCounts, type Counts } from '../../../catalog/counts.js';
import type { FeedEntry } from '../../../catalog/columns.js';
import { readNewestEntries } from '../../../catalog/feed.js';
import { listPlans, type Plan } from '../../../limits/plans.js';
import { cached } from '../../../platform/async/cached.js';
import type { Health } from '../../../platform/telemetry/health.js';
import type { PageDescription, PageRouter } from '../../parts/context.js';
import type { PublicOptions, PublicParts } from '../context.js';
import { Badge, Button, CodeBlock, Notice } from '../../parts/content/components.js';
import { publicPage } from '../../parts/frame/page.js';
import { GuideCards } from '../../parts/guides/guide-pages.js';
import { SampleTabs } from '../../parts/content/samples.js';
import { GUIDES_PATH } from '../guides/guides.js';
import { GetAKey, KeySteps } from './get-a-key.js';
import { Newest, Plans, Totals } from './numbers.js';
import { STATUS_PATH, statusForCallers, type ServiceStatus } from '../status.js';

/** How long the page shows the same numbers and the same status, in milliseconds. */
const LIFETIME_MS = 1_000;

/** How many of the latest changes the page shows. */
const NEWEST = 5;

/** Guides that the page leads to: how to call the API, to generate a client, and to keep a mirror. */
const FIRST_GUIDES = 3;

/** The content of the page. */
interface Landing {
  /** Undefined while the database is down. */
  readonly numbers:
    | { readonly counts: Counts; readonly newest: readonly FeedEntry[]; readonly plans: readonly Plan[] }
    | undefined;
  readonly status: ServiceStatus;
}

async function loadLanding(db: Knex, health: Health): Promise<Landing> {
  const numbers = await Promise.all([readCatalogCounts(db), readNewestEntries(db, NEWEST), listPlans(db)]).then(
    ([counts, newest, plans]) => ({ counts, newest, plans }),
    () => undefined,
  );
  return { numbers, status: statusForCallers(health) };
}

/** Adds the landing page, `/`. While the database is down, notices replace the numbers. */
export function addLandingPage(router: PageRouter, { db, health, site }: PublicParts): void {
  const landing = cached(
    async () => publicPage(site, DESCRIPTION, <LandingPage {...await loadLanding(db, health)} site={site} />),
    LIFETIME_MS,
  );
  router.get('/', async (ctx) => (await landing()).send(ctx, 'no-cache'));
}

const DESCRIPTION: PageDescription = {
  title: 'Catalog Lookup Service',
  section: 'home',
  description: 'A read-only HTTP catalogue of movies, series, people and curated collections, with a feed of changes.',
};

function LandingPage({ numbers, status, site }: Landing & { readonly site: PublicOptions }): VNode {
  return (
    <div class="container landing">
      <Hero status={status} site={site} counts={numbers?.counts} />

      <section>
        <h2 id="numbers">In the catalogue</h2>
        <Totals counts={numbers?.counts} />
      </section>

      <section class="split">
        <div>
          <h2 id="newest">Latest changes</h2>
          <p>
            The titles that were created or updated last. Your copy of the catalogue gets every change from{' '}
            <a href="/docs#getChanges">the feed</a>.
          </p>
        </div>
        <Newest entries={numbers?.newest} />
      </section>

      <section class="split">
        <div>
          <h2 id="key">Get a key</h2>
          <p>
            Every call needs an API key. Use keys in back ends only, never in client-side code. Create one per
            environment, so you can revoke one without breaking the others: a revoked key fails on the very next
            request.
          </p>
        </div>
        <KeySteps signInBy={site.signInBy} plans={numbers?.plans} />
      </section>

      <section>
        <h2 id="next">Next steps</h2>
        <GuideCards guides={site.guides.slice(0, FIRST_GUIDES)} path={GUIDES_PATH} level={3} />
      </section>

      <section class="split">
        <div>
          <h2 id="plans">Plans and limits</h2>
          <p>
            Each plan limits requests per minute and per day. Your keys on the same plan share its limits, and every
            response to a valid key shows how many requests you have left.
          </p>
        </div>
        <Plans plans={numbers?.plans} />
      </section>
    </div>
  );
}

interface HeroProps extends Pick<Landing, 'status'> {
  readonly site: PublicOptions;
  readonly counts: Counts | undefined;
}

/** The purpose of the service, its state, and a first call with its response. */
function Hero({ status, site, counts }: HeroProps): VNode {
  const baseUrl = site.publicUrl();
  return (
    <div class="hero split">
      <section>
        <p class="hero-status">
          <a href={STATUS_PATH}>
            <Badge tone={status.tone}>{status.summary}</Badge>
          </a>
        </p>
        <h1 id="what">
          <span>Look up titles.</span> <span>Follow every change.</span>
        </h1>
        <p class="lead">
          A read-only HTTP API for a catalogue of movies, series, people and curated collections. Built for back ends,
          described by an OpenAPI contract.
        </p>
        {status.details.map((detail) => (
          <Notice key={detail} tone={status.tone}>
            {detail}
          </Notice>
        ))}
        <p class="hero-actions">
          <GetAKey signInBy={site.signInBy} />
          <Button href="/docs" label="Read the reference" />
        </p>
        <p class="cluster">
          <span class="muted small">Base URL</span> <code>{baseUrl}</code>{' '}
          <span class="muted">All paths begin with /api/v1.</span>
        </p>
      </section>
      <section class="first-call">
        <h2 id="first-call">Your first call</h2>
        <SampleTabs name="first-call-in" baseUrl={baseUrl} target="/api/v1/stats" />
        {counts && <CodeBlock label="Response" code={JSON.stringify(statsOf(counts), undefined, 2)} language="json" />}
        <p class="muted small">
          <code>CATALOG_API_KEY</code> holds <a href="#key">your key</a>. The <a href="/docs">reference</a> has the same
          samples for every operation.
        </p>
      </section>
    </div>
  );
}
