import type { VNode } from 'preact';
import { Badge, Fact, Notice, Stat, Table } from '../../site/layout/components.js';
import { formatNumber, RelativeTime, Time } from '../../site/layout/values.js';
import type { PageRouter } from '../../site/context.js';
import { guidesUrl, type OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';
import type { OperatorGuard } from '../sign-in.js';
import { componentReader, type Component } from './components.js';
import { readNewestCopy, type NewestCopy } from './newest-copy.js';
import { openPublishedFolder } from '../../copies/published.js';
import { readDatabaseFacts, readRedisVersion, type DatabaseFacts } from './facts.js';
import type { LatestTraffic, Traffic } from './last-hour.js';

/** Adds the first page: whether everything works, what the last hour was like, and what runs here. */
export function addStatus(router: PageRouter, parts: OperatorParts, requireOperator: OperatorGuard): void {
  const { config, db, redis, lastHour, log } = parts;
  const readComponents = componentReader(config, lastHour);
  const copies = config.copiesDir === undefined ? undefined : openPublishedFolder(config.copiesDir);

  router.get(
    '/',
    requireOperator(async (ctx) => {
      const [traffic, facts, redisVersion, copy] = await Promise.all([
        lastHour.latest().catch((error: unknown): undefined => {
          log.error({ err: error }, 'metrics could not be read');
        }),
        readDatabaseFacts(db),
        readRedisVersion(redis),
        copies && readNewestCopy(copies),
      ]);
      const components = await readComponents(facts !== undefined);
      const guides = guidesUrl(parts);
      operatorPage(
        ctx,
        { title: 'Status', tab: 'status' },
        <>
          <Summary components={components} facts={facts} traffic={traffic} />
          <Components components={components} guides={guides} />
          {traffic === undefined ? (
            <Notice tone="danger">The metrics could not be read. The log has the reason.</Notice>
          ) : (
            <LatestHour traffic={traffic} />
          )}
          <Feed facts={facts} copy={copy} />
          <section>
            <h2 id="versions">Versions</h2>
            <dl class="facts">
              <Fact name="Service">{traffic?.versions.service ?? <Unknown subject="the service" />}</Fact>
              <Fact name="Node.js">{traffic?.versions.node ?? <Unknown subject="the service" />}</Fact>
              <Fact name="PostgreSQL">{facts?.version ?? <Unknown subject="PostgreSQL" />}</Fact>
              {config.redisUrl !== undefined && <Fact name="Redis">{redisVersion ?? <Unknown subject="Redis" />}</Fact>}
              <Fact name="Migrations">
                {facts === undefined ? <Unknown subject="PostgreSQL" /> : <Migrations {...facts.migrations} />}
              </Fact>
            </dl>
          </section>
        </>,
      );
    }),
  );
}

/** @param subject - what would know it */
function Unknown({ subject }: { readonly subject: string }): VNode {
  return <span class="muted">Unknown: {subject} does not answer</span>;
}

interface SummaryProps {
  readonly components: readonly Component[];
  readonly facts: DatabaseFacts | undefined;
  readonly traffic: LatestTraffic | undefined;
}

/** What needs attention, first of all. */
function Summary({ components, facts, traffic }: SummaryProps): VNode {
  const lost = components.filter(({ current }) => current?.state === 'lost').map(({ name }) => name);
  const pending = facts?.migrations.pending.length ?? 0;
  if (lost.length === 0 && pending === 0 && facts !== undefined && traffic !== undefined)
    return <Notice tone="ok">Everything works.</Notice>;
  return (
    <Notice tone="danger">
      {lost.length > 0 && (
        <strong>{`${lost.join(', ')} ${/,|notifications$/.test(lost.join()) ? 'are' : 'is'} down. `}</strong>
      )}
      {facts === undefined && 'PostgreSQL did not answer this page. '}
      {traffic === undefined && 'The metrics could not be read. '}
      {pending > 0 && (
        <>
          {pending === 1 ? 'A migration is' : `${pending} migrations are`} pending: run <code>catalog migrate</code>.
        </>
      )}
    </Notice>
  );
}

interface ComponentsProps {
  readonly components: readonly Component[];
  /** The address of the guides; undefined where this service has no public pages. */
  readonly guides: string | undefined;
}

function Components({ components, guides }: ComponentsProps): VNode {
  const unused = components.filter(({ isConfigured }) => !isConfigured);
  return (
    <section>
      <h2 id="components">Components</h2>
      <Table
        caption="Components"
        hasCards
        columns={['Component', 'State', 'Since', 'What to do']}
        rows={components
          .filter(({ isConfigured }) => isConfigured)
          .map((component) => [
            component.name,
            <State {...component} />,
            component.current === undefined ? '–' : <RelativeTime at={toTime(component.current.since)} />,
            <Advice component={component} guides={guides} />,
          ])}
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

function State({ current }: Component): VNode {
  if (current === undefined) return <Badge tone="info">Unknown</Badge>;
  return current.state === 'up' ? <Badge tone="ok">Up</Badge> : <Badge tone="danger">Down</Badge>;
}

function Advice({ component, guides }: { readonly component: Component } & Pick<ComponentsProps, 'guides'>): VNode {
  const { current, consequence, advice, guide } = component;
  if (current?.state !== 'lost') return <>Nothing</>;
  return (
    <span>
      {consequence} <strong>{advice}</strong>{' '}
      {guides !== undefined && <a href={`${guides}/${guide}`}>More in the guide</a>}
    </span>
  );
}

function LatestHour({ traffic: { since, api, operations } }: { readonly traffic: LatestTraffic }): VNode {
  return (
    <section>
      <h2 id="traffic">Last hour</h2>
      <dl class="stats">
        <Stat name="Requests">{formatNumber(api.requests)}</Stat>
        <Stat name="Refused by a limit">{formatNumber(api.refused)}</Stat>
        <Stat name="Failed">{formatNumber(api.failed)}</Stat>
        <Stat name="99th percentile">{formatSeconds(api.p99)}</Stat>
      </dl>
      <p class="muted small">
        Calls of the API that this server has counted since <Time at={toTime(since)} />, those with an invalid key
        included. Percentiles are estimated from a histogram.
      </p>
      {operations.size > 0 && (
        <Table
          caption="Requests by operation"
          hasCards
          columns={[
            'Operation',
            { label: 'Requests', numeric: true },
            { label: 'Refused', numeric: true },
            { label: 'Failed', numeric: true },
            { label: 'p99', numeric: true },
          ]}
          rows={[...operations].map(([id, { requests, refused, failed, p99 }]: readonly [string, Traffic]) => [
            <code>{id}</code>,
            formatNumber(requests),
            formatNumber(refused),
            formatNumber(failed),
            formatSeconds(p99),
          ])}
        />
      )}
    </section>
  );
}

interface FeedProps {
  readonly facts: DatabaseFacts | undefined;
  /** Undefined for a server that serves no copies. */
  readonly copy: NewestCopy | undefined;
}

function Feed({ facts, copy }: FeedProps): VNode {
  return (
    <section>
      <h2 id="feed">Feed</h2>
      {facts === undefined ? (
        <p>
          <Unknown subject="PostgreSQL" />
        </p>
      ) : (
        <dl class="facts">
          <Fact name="Newest entry">
            {facts.feed.isEmpty ? (
              'None yet'
            ) : (
              <>
                <RelativeTime at={facts.feed.newest} />{' '}
                <span class="muted">
                  (<Time at={facts.feed.newest} />)
                </span>
              </>
            )}
          </Fact>
          {copy !== undefined && (
            <Fact name="Newest copy">
              <NewestCopyAge {...copy} />
            </Fact>
          )}
          <Fact name="Feed start">{facts.feed.hasStart ? <Time at={facts.feed.start} /> : 'The first entry'}</Fact>
          <Fact name="Writers">
            {facts.writers.isActive ? 'One at work' : 'None at work'}, {formatNumber(facts.writers.waiting)} waiting
          </Fact>
        </dl>
      )}
    </section>
  );
}

/** When the newest copy was made. A mirror cannot begin with one that is older than the feed's window. */
function NewestCopyAge(copy: NewestCopy): VNode {
  if (copy.kind === 'unreadable') return <Badge tone="danger">Unreadable</Badge>;
  if (copy.kind === 'none') return <>None in COPIES_DIR yet</>;
  const at = toTime(copy.createdAt);
  return (
    <>
      <RelativeTime at={at} />{' '}
      <span class="muted">
        (<Time at={at} />)
      </span>{' '}
      {copy.isOld && <Badge tone="danger">Too old</Badge>}
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

/** @returns a duration as people read it, such as `12 ms`; a dash for none */
function formatSeconds(seconds: number | undefined): string {
  if (seconds === undefined) return '–';
  const milliseconds = seconds * 1_000;
  return milliseconds < 10 ? `${milliseconds.toFixed(1)}\u00a0ms` : `${formatNumber(Math.round(milliseconds))}\u00a0ms`;
}

/** @param at - in milliseconds since 1970 @returns the same in RFC 3339 and UTC */
function toTime(at: number): string {
  return new Date(at).toISOString();
}
