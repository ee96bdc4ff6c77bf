import type { VNode } from 'preact';
import type { Counts } from '../../catalog/counts.js';
import type { Plan } from '../../limits/plans.js';
import { Badge, CodeBlock, Notice, Table } from '../layout/components.js';
import { formatNumber } from '../layout/numbers.js';
import { SampleTabs } from '../layout/sample-tabs.js';
import type { Reading } from '../delivery/cached-value.js';
import type { ServiceStatus } from './status.js';

/** What the landing page shows. */
export interface LandingContent {
  readonly baseUrl: string;
  /** Undefined while the database cannot be asked. */
  readonly numbers: Reading<{ readonly counts: Counts; readonly plans: readonly Plan[] }>;
  readonly status: ServiceStatus;
}

const COUNTS: readonly (readonly [keyof Counts, string])[] = [
  ['titles', 'Titles'],
  ['movies', 'Movies'],
  ['series', 'Series'],
  ['available_in_library', 'In the library'],
  ['people', 'People'],
  ['collections', 'Collections'],
];

const NUMBERS_MISSING =
  'The database does not answer at the moment, so this part is missing. Try again in a few seconds.';

/** The body of the landing page. */
export function LandingBody({ baseUrl, numbers, status }: LandingContent): VNode {
  return (
    <div class="container landing">
      <section class="hero" aria-labelledby="what">
        <p class="hero-status">
          <Badge tone={status.tone}>{status.summary}</Badge>
        </p>
        <h1 id="what">Look titles up. Follow every change.</h1>
        <p class="lead">
          A read-only HTTP catalogue of movies, series, people and curated collections, made for back ends. Its contract
          is an OpenAPI document that the server is tested against.
        </p>
        <dl class="base-url">
          <dt>Base URL</dt>
          <dd>
            <code>{baseUrl}</code>
          </dd>
        </dl>
        {status.details.length > 0 && (
          <Notice tone={status.tone}>
            {status.details.map((detail) => (
              <p key={detail}>{detail}</p>
            ))}
          </Notice>
        )}
      </section>

      <section aria-labelledby="numbers">
        <h2 id="numbers">In the catalogue now</h2>
        {numbers === undefined ? (
          <Notice tone="warning">{NUMBERS_MISSING}</Notice>
        ) : (
          <Numbers counts={numbers.counts} />
        )}
      </section>

      <section aria-labelledby="key">
        <h2 id="key">Get a key</h2>
        <p>
          Every call carries an API key. Create one in the <a href="/settings">settings</a>: it is shown once. If you
          have no access yet, ask the people who run this service.
        </p>
        <p>
          Keys belong in back ends, never in client-side code. Hold one key for each environment, so that you can revoke
          each alone. A revoked key fails on the very next request.
        </p>
      </section>

      <section aria-labelledby="first-call">
        <h2 id="first-call">First call</h2>
        <p>
          Put your key into the environment, and ask for the totals of the catalogue. In a shell,{' '}
          <code>read -rs KEY &amp;&amp; export KEY</code> waits for you to paste it, and keeps it out of the history.
        </p>
        <SampleTabs name="language" baseUrl={baseUrl} target="/api/v1/stats" />
        {numbers !== undefined && <CodeBlock label="Response" code={statsAnswer(numbers.counts)} />}
      </section>

      <section aria-labelledby="plans">
        <h2 id="plans">Plans and limits</h2>
        <p>A plan counts the requests of all keys that a developer holds on it. Each answer says how many remain.</p>
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
        { label: 'Requests a minute', numeric: true },
        { label: 'Requests a day', numeric: true },
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

/** The answer of the first call, as the API gives it. */
function statsAnswer({ collections, ...counts }: Counts): string {
  return JSON.stringify({ data: { ...counts, svc_collections: collections } }, undefined, 2);
}
