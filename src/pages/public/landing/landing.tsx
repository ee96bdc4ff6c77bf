import { readCatalogCounts } from '../../../catalog/counts.js';
import { readNewestEntries } from '../../../catalog/feed.js';
import { listPlans } from '../../../limits/plans.js';
import type { PageRouter } from '../../parts/context.js';
import type { PublicParts } from '../context.js';
import { cached } from '../../../platform/async/cached.js';
import { Badge, Button, Notice } from '../../parts/content/components.js';
import { publicPage } from '../../parts/frame/page.js';
import { SampleTabs } from '../../parts/content/samples.js';
import { GUIDES_PATH } from '../guides/guides.js';
import { keyAddress, KeySteps } from './get-a-key.js';
import { Newest, Plans, Totals } from './numbers.js';
import { STATUS_PATH, statusForCallers } from '../status.js';

/** How long the page shows the same numbers and the same status, in milliseconds. */
const LIFETIME_MS = 1_000;

/** How many of the latest changes the page shows. */
const NEWEST = 10;

/** Guides that the page leads to: how to call the API, to generate a client, and to keep a mirror. */
const FIRST_GUIDES = 3;

/** Adds the landing page, `/`. While the database is down, notices replace the numbers. */
export function addLandingPage(router: PageRouter, { db, health, site }: PublicParts): void {
  const landing = cached(async () => {
    const numbers = await Promise.all([readCatalogCounts(db), readNewestEntries(db, NEWEST), listPlans(db)]).then(
      ([counts, newest, plans]) => ({ counts, newest, plans }),
      () => undefined,
    );
    const status = statusForCallers(health);
    const baseUrl = site.publicUrl();
    const description =
      'A read-only HTTP catalogue of movies, series, people and curated collections, with a feed of changes.';
    return publicPage(
      site,
      { title: 'Catalog Lookup Service', section: 'home', description },
      <div class="container landing">
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
              A read-only HTTP API for a catalogue of movies, series, people and curated collections. Built for back
              ends, described by an OpenAPI contract.
            </p>
            {status.details.map((detail) => (
              <Notice key={detail} tone={status.tone}>
                {detail}
              </Notice>
            ))}
            <p class="hero-actions">
              <Button href={keyAddress(site)} tone="primary" label="Get a key" />
              <Button href="/docs" label="Read the reference" />
            </p>
            <p class="cluster">
              <span class="muted small">Base URL</span> <code>{baseUrl}</code>{' '}
              <span class="muted">All paths begin with /api/v1.</span>
            </p>
          </section>
          <section>
            <h2 id="first-call">Your first call</h2>
            <SampleTabs name="first-call-in" baseUrl={baseUrl} target="/api/v1/stats" />
            <p class="muted small">
              <code>KEY</code> holds <a href="#key">your key</a>. The <a href="/docs">reference</a> has the same samples
              for every operation.
            </p>
          </section>
        </div>

        <div class="split">
          <section>
            <h2 id="numbers">In the catalogue</h2>
            <Totals counts={numbers?.counts} />
          </section>
          <section>
            <h2 id="newest">Latest changes</h2>
            <Newest entries={numbers?.newest} />
          </section>
        </div>

        <section class="split">
          <div>
            <h2 id="key">Get a key</h2>
            <p>
              Every call needs an API key. Use keys in back ends only, never in client-side code. Create one per
              environment, so that you can revoke each on its own: a revoked key fails on the very next request.
            </p>
          </div>
          <KeySteps signInBy={site.signInBy} plans={numbers?.plans} />
        </section>

        <section>
          <h2 id="next">Next steps</h2>
          <ul class="card-grid">
            {site.guides.slice(0, FIRST_GUIDES).map(({ name, title, description }) => (
              <li key={name} class="card">
                <h3>
                  <a href={`${GUIDES_PATH}/${name}`}>{title}</a>
                </h3>
                <p class="muted">{description}</p>
              </li>
            ))}
          </ul>
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
      </div>,
    );
  }, LIFETIME_MS);
  router.get('/', async (ctx) => (await landing()).send(ctx, 'no-cache'));
}
