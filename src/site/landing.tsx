import type { VNode } from 'preact';
import { readCatalogCounts, type Counts } from '../catalog/counts.js';
import { reportReadiness, type Readiness } from '../http/probes/readiness.js';
import { listPlans, type Plan } from '../limits/plans.js';
import type { PageRouter, SiteParts } from './context.js';
import { cached } from './delivery/cached.js';
import { Badge, CodeBlock, Notice, Table, type Tone } from './layout/components.js';
import { Operator } from './layout/operator.js';
import { publicPage } from './layout/page.js';
import { SampleTabs } from './layout/samples.js';
import { formatNumber } from './layout/values.js';

/** How long the page shows the same numbers and the same status, in milliseconds. */
const LIFETIME_MS = 1_000;

interface LandingContent {
  readonly baseUrl: string;
  /** Undefined while the database cannot be read. */
  readonly numbers: { readonly counts: Counts; readonly plans: readonly Plan[] } | undefined;
  readonly status: ServiceStatus;
}

/** Adds the landing page, `/`. While the database is down, a notice replaces the numbers. */
export function addLandingPage(router: PageRouter, { db, health, isStopping, site }: SiteParts): void {
  const landing = cached(async () => {
    const numbers = await Promise.all([readCatalogCounts(db), listPlans(db)]).then(
      ([counts, plans]) => ({ counts, plans }),
      () => undefined,
    );
    const status = describeStatus({ isStopping: isStopping(), states: health.states });
    const description = 'A read-only HTTP catalogue of titles, people and curated collections, with a feed of changes.';
    return publicPage(
      site,
      { title: 'Catalog Lookup Service', section: 'home', description },
      <Landing baseUrl={site.publicUrl()} numbers={numbers} status={status} />,
    );
  }, LIFETIME_MS);
  router.get('/', async (ctx) => (await landing()).send(ctx, 'no-cache'));
}

/** The state of the service, for people. */
interface ServiceStatus {
  readonly tone: Tone;
  readonly summary: string;
  /** What is degraded or down, a sentence each. */
  readonly details: readonly string[];
}

/** Describes what `/readyz` reports. */
function describeStatus(readiness: Readiness): ServiceStatus {
  const { isReady, reasons } = reportReadiness(readiness);
  const details = reasons.map(({ detail }) => detail);
  if (!isReady) return { tone: 'danger', summary: 'Unavailable', details };
  if (reasons.length > 0) return { tone: 'warning', summary: 'Degraded', details };
  return { tone: 'ok', summary: 'All systems operational', details };
}

const COUNTS: readonly (readonly [keyof Counts, string])[] = [
  ['titles', 'Titles'],
  ['movies', 'Movies'],
  ['series', 'Series'],
  ['available_in_library', 'In the library'],
  ['people', 'People'],
  ['collections', 'Collections'],
];

const NUMBERS_MISSING = 'The database is not responding, so these numbers are unavailable. Try again in a few seconds.';

function Landing({ baseUrl, numbers, status }: LandingContent): VNode {
  return (
    <div class="container">
      <section class="hero" aria-labelledby="what">
        <p class="hero-status">
          <Badge tone={status.tone}>{status.summary}</Badge>
        </p>
        <h1 id="what">Look up titles. Follow every change.</h1>
        <p class="lead">
          A read-only HTTP API for movies, series, people and curated collections, built for back ends and described by
          an OpenAPI contract.
        </p>
        <dl class="base-url">
          <dt>Base URL</dt>
          <dd>
            <code>{baseUrl}</code>
          </dd>
        </dl>
        {status.details.map((detail) => (
          <Notice key={detail} tone={status.tone}>
            {detail}
          </Notice>
        ))}
      </section>

      <section aria-labelledby="numbers">
        <h2 id="numbers">In the catalogue</h2>
        {numbers === undefined ? (
          <Notice tone="warning">{NUMBERS_MISSING}</Notice>
        ) : (
          <Numbers counts={numbers.counts} />
        )}
      </section>

      <section aria-labelledby="key">
        <h2 id="key">Get a key</h2>
        <p>
          Every call needs an API key. Create one in your <a href="/settings">settings</a> and copy it: it is shown only
          once. If you cannot sign in yet, ask <Operator /> for access.
        </p>
        <p>
          Use keys in back ends only, never in client-side code. Create one per environment, so that you can revoke each
          on its own. A revoked key fails on the very next request.
        </p>
      </section>

      <section aria-labelledby="first-call">
        <h2 id="first-call">Make your first call</h2>
        <p>
          Put your key in an environment variable, then request the catalogue's totals. In a shell, run{' '}
          <code>read -rs KEY &amp;&amp; export KEY</code> then paste the key and press Enter. This keeps it out of your
          shell history.
        </p>
        <SampleTabs name="language" baseUrl={baseUrl} target="/api/v1/stats" />
        {numbers !== undefined && <CodeBlock label="Response" code={statsResponse(numbers.counts)} language="json" />}
      </section>

      <section aria-labelledby="plans">
        <h2 id="plans">Plans and limits</h2>
        <p>
          All your keys on a plan share its limits. Every response to a valid key shows how many requests you have left.
        </p>
        {numbers === undefined ? <Notice tone="warning">{NUMBERS_MISSING}</Notice> : <Plans plans={numbers.plans} />}
      </section>
    </div>
  );
}

function Numbers({ counts }: { readonly counts: Counts }): VNode {
  return (
    <dl class="stats">
      {COUNTS.map(([name, label]) => (
        <div key={name} class="stat">
          <dt>{label}</dt>
          <dd>{formatNumber(counts[name])}</dd>
        </div>
      ))}
    </dl>
  );
}

function Plans({ plans }: { readonly plans: readonly Plan[] }): VNode {
  return (
    <Table
      caption="Plans and their limits"
      columns={[
        'Plan',
        { label: 'Requests per minute', numeric: true },
        { label: 'Requests per day', numeric: true },
        'Commercial use',
      ]}
      rows={plans.map(({ id, name, requestsPerMinute, requestsPerDay, commercialUse }) => [
        <>
          {name} <code>{id}</code>
        </>,
        formatNumber(requestsPerMinute),
        formatNumber(requestsPerDay),
        commercialUse ? 'Allowed' : 'Not allowed',
      ])}
    />
  );
}

/** The response to the first call, as the API gives it. */
function statsResponse({ collections, ...counts }: Counts): string {
  return JSON.stringify({ data: { ...counts, svc_collections: collections } }, undefined, 2);
}
