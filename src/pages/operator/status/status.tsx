import type { VNode } from 'preact';
import { formatCount } from '../../../platform/text/count.js';
import { toRfc3339 } from '../../../platform/time/micros.js';
import { Badge, Facts, Notice } from '../../parts/content/components.js';
import { Table } from '../../parts/content/table.js';
import { BothTimes, RelativeTime, Time } from '../../parts/content/values.js';
import { Outcomes, sumOf, UsageOverTime } from '../../parts/usage/over-time.js';
import type { PageRouter } from '../../parts/context.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';
import { componentReader, type Component } from './components.js';
import { openPublishedFolder } from '../../../copies/published.js';
import {
  readDatabaseFacts,
  readNewestCopy,
  readRedisVersion,
  readTraffic,
  type DatabaseFacts,
  type NewestCopy,
} from './facts.js';

/** Adds the first page: whether everything works, what the last 24 hours were like, and what runs here. */
export function addStatus(router: PageRouter, parts: OperatorParts): void {
  const { config, db, redis, health, build, nodeVersion } = parts;
  const readComponents = componentReader(config, health);
  const copies = config.copiesDir === undefined ? undefined : openPublishedFolder(config.copiesDir);

  router.get('/', async (ctx) => {
    const [traffic, facts, redisVersion, copy] = await Promise.all([
      readTraffic(db),
      readDatabaseFacts(db),
      readRedisVersion(redis),
      copies && readNewestCopy(copies),
    ]);
    const components = await readComponents(facts !== undefined);
    const { feedStart = 0n, newest = 0n } = facts?.feed ?? {};
    operatorPage(
      ctx,
      { title: 'Status', tab: 'status' },
      <>
        <Summary components={components} facts={facts} />
        <Components components={components} />
        <section>
          <h2 id="traffic">Last 24 hours</h2>
          {traffic === undefined ? (
            <p>
              <Unknown subject="PostgreSQL" />
            </p>
          ) : (
            <>
              <Outcomes counts={sumOf(traffic)} />
              <UsageOverTime range="24h" buckets={traffic} />
            </>
          )}
          <p class="muted small">
            Requests with a valid key, of all servers. They are saved about every 10 seconds. For the durations of
            requests, and for each server alone, use <a href="/guides/monitor#the-dashboard">the dashboard</a>.
          </p>
        </section>
        <section>
          <h2 id="feed">Feed</h2>
          {facts === undefined ? (
            <p>
              <Unknown subject="PostgreSQL" />
            </p>
          ) : (
            <Facts
              facts={{
                'Newest entry': newest === feedStart ? 'None yet' : <BothTimes at={toRfc3339(newest)} />,
                'Newest copy': copy !== undefined && <NewestCopyAge {...copy} />,
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
              PostgreSQL: facts?.version ?? <Unknown subject="PostgreSQL" />,
              Redis: config.redisUrl !== undefined && (redisVersion ?? <Unknown subject="Redis" />),
              Migrations: facts ? <Migrations {...facts.migrations} /> : <Unknown subject="PostgreSQL" />,
            }}
          />
        </section>
      </>,
    );
  });
}

/** @param subject - what would know it */
function Unknown({ subject }: { readonly subject: string }): VNode {
  return <span class="muted">Unknown: {subject} does not answer</span>;
}

interface SummaryProps {
  readonly components: readonly Component[];
  readonly facts: DatabaseFacts | undefined;
}

/** What needs attention, first of all. */
function Summary({ components, facts }: SummaryProps): VNode {
  const lost = components.filter(({ current }) => current?.state === 'lost').map(({ name }) => name);
  const pending = facts?.migrations.pending.length ?? 0;
  if (lost.length === 0 && pending === 0 && facts !== undefined) return <Notice tone="ok">Everything works.</Notice>;
  return (
    <Notice tone="danger">
      {lost.length > 0 && <strong>Down: {lost.join(', ')}. </strong>}
      {facts === undefined && 'PostgreSQL did not answer this page. '}
      {pending > 0 && (
        <>
          {pending === 1 ? 'A migration is' : `${pending} migrations are`} pending: run <code>catalog migrate</code>.
        </>
      )}
    </Notice>
  );
}

function Components({ components }: { readonly components: readonly Component[] }): VNode {
  const unused = components.filter(({ current }) => current === undefined);
  return (
    <section>
      <h2 id="components">Components</h2>
      <Table
        caption="Components"
        hasCards
        columns={['Component', 'State', 'Since', 'What to do']}
        rows={components.flatMap(({ name, current, consequence, advice, guide }) => {
          if (current === undefined) return [];
          const isUp = current.state === 'up';
          const state = <Badge tone={isUp ? 'ok' : 'danger'}>{isUp ? 'Up' : 'Down'}</Badge>;
          const whatToDo = (
            <span>
              {consequence} <strong>{advice}</strong> <a href={`/guides/${guide}`}>More in the guide</a>
            </span>
          );
          return [[name, state, <RelativeTime at={toTime(current.since)} />, isUp ? 'Nothing' : whatToDo]];
        })}
      />
      {unused.length > 0 && (
        <p class="muted small">
          Not configured:{' '}
          {unused.map(({ name, setting }, index) => (
            <>
              {index > 0 && ', '}
              {name} (<code>{setting}</code>)
            </>
          ))}
          .
        </p>
      )}
    </section>
  );
}

/** When the newest copy was made. A mirror cannot begin with one that is older than the feed's window. */
function NewestCopyAge(copy: NewestCopy): VNode {
  if (copy.kind === 'unreadable') return <Badge tone="danger">Unreadable</Badge>;
  if (copy.kind === 'none') return <>None in COPIES_DIR yet</>;
  return (
    <>
      <BothTimes at={toTime(copy.createdAt)} /> {copy.isOld && <Badge tone="danger">Too old</Badge>}
    </>
  );
}

function Migrations({ applied, pending }: DatabaseFacts['migrations']): VNode {
  return (
    <>
      {applied.length} applied, the last is <code>{applied.at(-1)}</code>.{' '}
      {pending.length === 0 ? 'None is pending.' : `Pending: ${pending.join(', ')}.`}
    </>
  );
}

/** @param at - in milliseconds since 1970 @returns the same in RFC 3339 and UTC */
function toTime(at: number): string {
  return new Date(at).toISOString();
}
