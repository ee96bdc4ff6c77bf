import type { ComponentChildren, VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { formatCount } from '../../../platform/text/count.js';
import { toRfc3339 } from '../../../platform/time/micros.js';
import {
  Badge,
  Deployment,
  Facts,
  Notice,
  BothTimes,
  RelativeTime,
  Time,
  type Tone,
} from '../../parts/content/components.js';
import type { DependencyState } from '../../../platform/telemetry/health.js';
import { Table } from '../../parts/content/table.js';
import { Outcomes, sumOf, UsageOverTime } from '../../parts/usage.js';
import type { PageRouter } from '../../parts/context.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';
import { statusLoader, type DatabaseFacts, type NewestCopy, type Status } from './load-status.js';

/** Adds the first page: whether everything works, what the last 24 hours were like, and what runs here. */
export function addStatus(router: PageRouter, parts: OperatorParts): void {
  const load = statusLoader(parts);
  router.get('/', async (ctx) => {
    operatorPage(ctx, { title: 'Status', tab: 'status' }, <StatusPage {...await load()} />);
  });
}

function StatusPage(status: Status): VNode {
  const { promotedAt, facts } = status;
  return (
    <>
      <Summary {...status} />
      {promotedAt !== undefined && (
        <Notice tone="danger">
          A standby was promoted <RelativeTime at={new Date(promotedAt).toISOString()} />. Unless replication was
          synchronous, <a href="/guides/backup-and-restore#restart-the-feed">restart the feed</a>.
        </Notice>
      )}
      <Components {...status} />
      <LimitScope {...status} />
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
      <section>
        <h2 id="feed">Feed</h2>
        {facts === undefined ? (
          <p>
            <Unknown />
          </p>
        ) : (
          <Feed facts={facts} newestCopy={status.newestCopy} />
        )}
      </section>
      <Versions {...status} />
    </>
  );
}

function Feed({
  facts,
  newestCopy,
}: {
  readonly facts: DatabaseFacts;
  readonly newestCopy: NewestCopy | undefined;
}): VNode {
  const { newest, feedStart } = facts.feed;
  return (
    <Facts
      facts={{
        'Newest entry': newest === feedStart ? 'None yet' : <BothTimes at={toRfc3339(newest)} />,
        'Newest copy': newestCopy && <Copy {...newestCopy} />,
        // Unless the feed was restarted, it starts with the first entry.
        'Feed start': feedStart > 0n ? <Time at={toRfc3339(feedStart)} /> : 'The first entry',
        Writers: `${facts.writers.isActive ? '1' : 'None'} active, ${formatCount(facts.writers.waiting)} waiting`,
      }}
    />
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
  return <span class="muted">Unknown: PostgreSQL does not answer</span>;
}

/** What needs attention, first of all. */
function Summary({ components, jobs, facts }: Status): VNode {
  const { command } = useContext(Deployment);
  const namesOf = (state: DependencyState): string =>
    components.flatMap(({ name, current }) => (current.state === state ? [name] : [])).join(', ');
  const [down, slow] = [namesOf('lost'), namesOf('slow')];
  const failing = [...jobs.states].filter(([, { failingSince }]) => failingSince !== undefined).map(([name]) => name);
  const pending = facts?.migrations.pending.length ?? 0;
  if (down === '' && slow === '' && failing.length + pending === 0 && facts !== undefined)
    return <Notice tone="ok">Everything works.</Notice>;
  return (
    <Notice tone="danger">
      {down !== '' && <strong>Down: {down}. </strong>}
      {slow !== '' && <strong>Slow: {slow}. </strong>}
      {facts !== undefined && failing.length > 0 && `Failing: ${failing.join(', ')}. `}
      {facts === undefined && 'PostgreSQL did not answer this page. '}
      {pending > 0 && (
        <>
          {pending === 1 ? 'A migration is' : `${pending} migrations are`} pending: run <code>{command} migrate</code>.
        </>
      )}
    </Notice>
  );
}

const STATES = {
  up: { tone: 'ok', label: 'Up' },
  slow: { tone: 'warning', label: 'Slow' },
  lost: { tone: 'danger', label: 'Down' },
} as const satisfies Readonly<Record<DependencyState, { tone: Tone; label: string }>>;

function Components({ components }: Status): VNode {
  return (
    <section>
      <h2 id="components">Components</h2>
      <Table
        caption="Components"
        hasCards
        columns={['Component', 'State', 'Since', 'What to do']}
        rows={components.map(({ name, current, consequence, advice, guide }) => {
          const isUp = current.state === 'up';
          const times = current.losses.length;
          const state = (
            <span>
              <Badge tone={STATES[current.state].tone}>{STATES[current.state].label}</Badge>
              {times > 1 && <span class="muted small"> lost {times} times in the last hour</span>}
            </span>
          );
          const whatToDo = (
            <span>
              {consequence} <strong>{advice}</strong> <a href={`/guides/${guide}`}>More in the guide</a>
            </span>
          );
          return [
            name,
            state,
            <RelativeTime at={new Date(current.since).toISOString()} />,
            isUp ? 'Nothing' : whatToDo,
          ];
        })}
      />
    </section>
  );
}

/** The work beside the requests, as this server sees it. */
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

/** Whether other servers count the requests of a plan too. */
function LimitScope({ redis }: Status): VNode | null {
  if (redis === undefined) {
    return (
      <p class="muted small">
        Limits are counted by this server only: <code>REDIS_URL</code> is not set.
      </p>
    );
  }
  if (redis.state === 'up') return null;
  const whose = redis.lostParts === undefined || redis.lostParts.length === 0 ? 'Limits' : 'Some limits';
  return <Notice tone="warning">{whose} are counted by this server only, until Redis is back.</Notice>;
}

/** What is wrong with a copy. */
const FAULTS = { good: undefined, refused: 'Refused by the feed: publish another', old: 'Too old' } as const;

function Copy(copy: NewestCopy): ComponentChildren {
  if (!('createdAt' in copy)) {
    return copy.state === 'missing' ? 'None in COPIES_DIR yet' : <Badge tone="danger">Unreadable</Badge>;
  }
  const fault = FAULTS[copy.state];
  return [<BothTimes at={copy.createdAt} />, ' ', fault && <Badge tone="danger">{fault}</Badge>];
}

function Migrations({ applied, pending }: DatabaseFacts['migrations']): VNode {
  return (
    <>
      {applied.length} applied, the last is <code>{applied.at(-1)}</code>.{' '}
      {pending.length === 0 ? 'None is pending.' : `Pending: ${pending.join(', ')}.`}
    </>
  );
}
