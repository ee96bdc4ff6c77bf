import type { ComponentChildren, VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { formatCount } from '../../../platform/text/count.js';
import { toRfc3339 } from '../../../platform/time/micros.js';
import { Badge, Deployment, Facts, Notice, BothTimes, RelativeTime, Time } from '../../parts/content/components.js';
import { Table } from '../../parts/content/table.js';
import { Outcomes, sumOf } from '../../parts/usage.js';
import { UsageOverTime } from '../../parts/usage-chart.js';
import type { PageRouter } from '../../parts/context.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';
import { statusLoader, type DatabaseFacts, type NewestCopy, type Status } from './load-status.js';

/** Adds the first page: the state of the components, the last 24 hours, and the versions. */
export function addStatus(router: PageRouter, parts: OperatorParts): void {
  const load = statusLoader(parts);
  router.get('/', async (ctx) => {
    operatorPage(ctx, { title: 'Status', tab: 'status' }, <StatusPage {...await load()} />);
  });
}

function StatusPage(status: Status): VNode {
  const { facts } = status;
  return (
    <>
      <Summary {...status} />
      <Components {...status} />
      <JobTable {...status} />
      <section>
        <h2 id="traffic">Last 24 hours</h2>
        {facts === undefined ? (
          <p>
            <Unknown />
          </p>
        ) : (
          <>
            <Outcomes counts={sumOf(facts.traffic)} />
            <UsageOverTime range="24h" buckets={facts.traffic} />
          </>
        )}
        <p class="muted small">
          Requests with a valid key, of all servers, up to about two minutes ago. For the durations of requests, and for
          each server alone, use <a href="/guides/monitor#the-dashboard">the dashboard</a>.
        </p>
      </section>
      <Feed {...status} />
      <Versions {...status} />
    </>
  );
}

function Feed({ facts, newestCopy }: Status): VNode {
  const known = (show: (facts: DatabaseFacts) => ComponentChildren) => (facts ? show(facts) : <Unknown />);
  return (
    <section>
      <h2 id="feed">Feed</h2>
      <Facts
        facts={{
          'Newest entry': known(({ feed: { newest, feedStart } }) =>
            newest === feedStart ? 'None yet' : <BothTimes at={toRfc3339(newest)} />,
          ),
          'Newest copy': newestCopy && <Copy {...newestCopy} />,
          // Unless the feed was restarted, it starts with the first entry.
          'Feed start': known(({ feed: { feedStart } }) =>
            feedStart > 0n ? <Time at={toRfc3339(feedStart)} /> : 'The first entry',
          ),
          Writers: known(
            ({ writers }) => `${writers.isActive ? '1' : 'None'} active, ${formatCount(writers.waiting)} waiting`,
          ),
        }}
      />
    </section>
  );
}

function Versions({ build, nodeVersion, facts }: Status): VNode {
  return (
    <section>
      <h2 id="versions">Versions</h2>
      <Facts
        facts={{
          Service: [build.version, build.commit && `, commit ${build.commit}`],
          'Node.js': nodeVersion,
          PostgreSQL: facts?.version ?? <Unknown />,
          Migrations: facts ? <Migrations {...facts.migrations} /> : <Unknown />,
        }}
      />
    </section>
  );
}

function Unknown(): VNode {
  return <span class="muted">Unknown: this page could not read PostgreSQL</span>;
}

/** How long a failed change is shown, in milliseconds. */
const FAILED_CHANGE_SHOWN_MS = 3_600_000;

/** The items that need attention, first of all. */
function Summary({ components, jobs, facts, newestCopy, failedChanges, promotedAt }: Status): VNode {
  const { command } = useContext(Deployment);
  const faults: ComponentChildren[] = (['Down', 'Slow', 'Comes and goes', 'Behind'] as const).flatMap((label) => {
    const names = components.flatMap(({ name, fault }) => (fault?.label === label ? [name] : []));
    return names.length === 0 ? [] : [<strong>{`${label}: ${names.join(', ')}.`}</strong>];
  });
  const failing = [...jobs.states].flatMap(([name, { failingSince }]) => (failingSince === undefined ? [] : [name]));
  if (facts === undefined) faults.push('This page could not read PostgreSQL.');
  // Without PostgreSQL, all of them fail.
  else if (failing.length > 0) faults.push(`Failing: ${failing.join(', ')}.`);
  const { lastAt = -Infinity } = failedChanges;
  if (lastAt > Date.now() - FAILED_CHANGE_SHOWN_MS) {
    faults.push(
      <>
        A change such as a revocation failed on this server <RelativeTime at={new Date(lastAt).toISOString()} />:{' '}
        <a href="/guides/runbook#postgresql-does-not-write">what to do</a>.
      </>,
    );
  }
  if (newestCopy && COPY_FAULTS[newestCopy.state] !== undefined) {
    const section =
      newestCopy.state === 'refused' ? 'the-feed-refuses-the-published-copy' : 'the-published-copy-is-old';
    faults.push(
      <>
        Mirrors cannot start from the newest copy{newestCopy.state === 'old' && ' once it is 30 days old'}:{' '}
        <a href={`/guides/runbook#${section}`}>what to do</a>.
      </>,
    );
  }
  const pending = facts?.migrations.pending.length ?? 0;
  if (pending > 0) {
    faults.push(
      <>
        {pending === 1 ? 'A migration is' : `${pending} migrations are`} pending: run <code>{command} migrate</code>.
      </>,
    );
  }
  if (promotedAt !== undefined) {
    faults.push(
      <>
        A standby was promoted <RelativeTime at={new Date(promotedAt).toISOString()} />. Unless replication was
        synchronous, <a href="/guides/backup-and-restore#restart-the-feed">restart the feed</a>.
      </>,
    );
  }
  if (faults.length === 0) return <Notice tone="ok">Everything works.</Notice>;
  return <Notice tone="danger">{faults.flatMap((fault) => [fault, ' '])}</Notice>;
}

function Components({ components, hasRedis }: Status): VNode {
  return (
    <section>
      <h2 id="components">Components</h2>
      <Table
        caption="Components"
        hasCards
        columns={['Component', 'State', 'Since', 'What to do']}
        rows={components.map(({ name, current: { losses, since }, lag, fault }) => [
          name,
          <span>
            {fault === undefined ? (
              <Badge tone="ok">Up</Badge>
            ) : (
              <Badge tone={fault.label === 'Down' ? 'danger' : 'warning'}>{fault.label}</Badge>
            )}
            {lag >= 1 && <span class="muted small"> {Math.round(lag)} s behind</span>}
            {losses.length > 1 && <span class="muted small"> lost {losses.length} times in the last hour</span>}
          </span>,
          <RelativeTime at={new Date(since).toISOString()} />,
          fault === undefined ? (
            'Nothing'
          ) : (
            <span>
              {fault.consequence} <strong>{fault.advice}</strong>{' '}
              <a href={`/guides/${fault.guide}`}>More in the guide</a>
            </span>
          ),
        ])}
      />
      {!hasRedis && (
        <p class="muted small">
          Limits are counted by this server only: <code>REDIS_URL</code> is not set.
        </p>
      )}
    </section>
  );
}

/** The jobs, as this server sees them. */
function JobTable({ jobs }: Status): VNode {
  return (
    <section>
      <h2 id="jobs">Jobs of this server</h2>
      <Table
        caption="Jobs"
        hasCards
        columns={['Job', 'State', 'Last success']}
        rows={Array.from(jobs.states, ([name, { succeededAt, failingSince }]) => [
          name,
          failingSince === undefined ? (
            <Badge tone="ok">Works</Badge>
          ) : (
            <span>
              <Badge tone="danger">Failing</Badge> since <RelativeTime at={new Date(failingSince).toISOString()} />:{' '}
              <a href="/guides/runbook#a-job-fails">what to do</a>
            </span>
          ),
          <RelativeTime at={new Date(succeededAt).toISOString()} />,
        ])}
      />
      <p class="muted small">A job for all servers may run on any of them.</p>
    </section>
  );
}

/** What is wrong with the newest copy. */
const COPY_FAULTS = {
  good: undefined,
  missing: 'None in COPIES_DIR yet',
  unreadable: 'Unreadable',
  refused: 'Refused by the feed: publish another',
  old: 'Too old',
} as const satisfies Readonly<Record<NewestCopy['state'], string | undefined>>;

function Copy(copy: NewestCopy): ComponentChildren {
  const fault = COPY_FAULTS[copy.state];
  return [
    'createdAt' in copy && [<BothTimes at={copy.createdAt} />, ' '],
    fault && <Badge tone="danger">{fault}</Badge>,
  ];
}

function Migrations({ applied, pending }: DatabaseFacts['migrations']): VNode {
  return (
    <>
      {applied.length} applied, the last is <code>{applied.at(-1)}</code>.{' '}
      {pending.length === 0 ? 'None is pending.' : `Pending: ${pending.join(', ')}.`}
    </>
  );
}
