import type { ComponentChildren, VNode } from 'preact';
import { formatCount } from '../../../platform/text/count.js';
import { fromSeconds, toRfc3339, type Micros } from '../../../platform/time/micros.js';
import { Badge, Facts, Notice, BothTimes, RelativeTime, Time, type Tone } from '../../parts/content/components.js';
import { Table } from '../../parts/content/table.js';
import { Outcomes, sumOf, UsageOverTime } from '../../parts/usage.js';
import type { PageRouter } from '../../parts/context.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';
import { componentReader, type Component } from './components.js';
import type { Jobs } from '../../../platform/process/jobs.js';
import type { ComponentState, DependencyState } from '../../../platform/telemetry/health.js';
import { openPublishedFolder, type PublishedFolder } from '../../../copies/published.js';
import { readDatabaseFacts, type DatabaseFacts } from './facts.js';

/** Half of the feed's window, as in the alert, in milliseconds. */
const OLD_COPY_AFTER_MS = 15 * 86_400_000;

/** Adds the first page: whether everything works, what the last 24 hours were like, and what runs here. */
export function addStatus(router: PageRouter, parts: OperatorParts): void {
  const { config, db, health, jobs, build, nodeVersion, fence } = parts;
  const readComponents = componentReader(config, health);
  const copies = config.copiesDir === undefined ? undefined : openPublishedFolder(config.copiesDir);

  router.get('/', async (ctx) => {
    const facts = await readDatabaseFacts(db);
    const components = await readComponents(facts !== undefined);
    const { feedStart = 0n, newest = 0n } = facts?.feed ?? {};
    const newestCopy = copies && (await showNewestCopy(copies, feedStart));
    operatorPage(
      ctx,
      { title: 'Status', tab: 'status' },
      <>
        <Summary components={components} jobs={jobs} facts={facts} />
        {fence.promotedAt !== undefined && feedStart < BigInt(fence.promotedAt) * 1000n && (
          <Notice tone="danger">
            A standby was promoted <RelativeTime at={new Date(fence.promotedAt).toISOString()} />. Unless replication
            was synchronous, <a href="/guides/backup-and-restore#restart-the-feed">restart the feed</a>.
          </Notice>
        )}
        <Components components={components} />
        <LimitScope redis={health.components.get('redis')} />
        <JobTable jobs={jobs} />
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
            Requests with a valid key, of all servers, up to about two minutes ago. For the durations of requests, and
            for each server alone, use <a href="/guides/monitor#the-dashboard">the dashboard</a>.
          </p>
        </section>
        <section>
          <h2 id="feed">Feed</h2>
          {facts === undefined ? (
            <p>
              <Unknown />
            </p>
          ) : (
            <Facts
              facts={{
                'Newest entry': newest === feedStart ? 'None yet' : <BothTimes at={toRfc3339(newest)} />,
                'Newest copy': newestCopy,
                // Unless the feed was restarted, it starts with the first entry.
                'Feed start': feedStart > 0n ? <Time at={toRfc3339(feedStart)} /> : 'The first entry',
                Writers: `${facts.writers.isActive ? '1' : 'None'} active, ${formatCount(facts.writers.waiting)} waiting`,
              }}
            />
          )}
        </section>
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
      </>,
    );
  });
}

function Unknown(): VNode {
  return <span class="muted">Unknown: PostgreSQL does not answer</span>;
}

interface SummaryProps {
  readonly components: readonly Component[];
  readonly jobs: Jobs;
  readonly facts: DatabaseFacts | undefined;
}

/** What needs attention, first of all. */
function Summary({ components, jobs, facts }: SummaryProps): VNode {
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
          {pending === 1 ? 'A migration is' : `${pending} migrations are`} pending: run <code>catalog migrate</code>.
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

function Components({ components }: { readonly components: readonly Component[] }): VNode {
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
function JobTable({ jobs }: { readonly jobs: Jobs }): VNode {
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
function LimitScope({ redis }: { readonly redis: ComponentState | undefined }): VNode | null {
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

/** When the newest copy was made. A mirror cannot begin with one that is older than the feed's window. */
async function showNewestCopy(copies: PublishedFolder, feedStart: Micros): Promise<ComponentChildren> {
  try {
    const published = await copies.read();
    if (published === undefined) return 'None in COPIES_DIR yet';
    const { created_at: createdAt } = published.newest;
    const isOld = Date.now() - Date.parse(createdAt) > OLD_COPY_AFTER_MS;
    const isRefused = fromSeconds(published.newest.position) < feedStart;
    const fault = isRefused ? 'Refused by the feed: publish another' : isOld && 'Too old';
    return [<BothTimes at={createdAt} />, ' ', fault && <Badge tone="danger">{fault}</Badge>];
  } catch {
    return <Badge tone="danger">Unreadable</Badge>;
  }
}

function Migrations({ applied, pending }: DatabaseFacts['migrations']): VNode {
  return (
    <>
      {applied.length} applied, the last is <code>{applied.at(-1)}</code>.{' '}
      {pending.length === 0 ? 'None is pending.' : `Pending: ${pending.join(', ')}.`}
    </>
  );
}
