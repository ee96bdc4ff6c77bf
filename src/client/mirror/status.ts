import type { IncomingMessage, ServerResponse } from 'node:http';
import { Metrics } from '../../platform/telemetry/metrics.js';
import type { SavedState } from './store.js';

const STATES = ['starting', 'copying', 'following', 'failing'] as const;

/** What a mirror is doing. */
export type MirrorState = (typeof STATES)[number];

/** A mirror is not ready once it was last up to date so long ago, in milliseconds. */
const READY_WITHIN_MS = 300_000;

/** The state of a running mirror, as metrics and as readiness. */
export class MirrorStatus {
  readonly metrics = new Metrics();
  state: MirrorState = 'starting';
  /** The mirror's position, in seconds. */
  position = 0;
  /** The result of the last comparison with a copy; undefined before it. */
  verification: SavedState['verified'];
  #currentAt: number | undefined;
  #backlog = 0;
  #failures = 0;
  #entries = 0;
  #copies = 0;

  constructor() {
    const { metrics } = this;
    const gauge = (name: string, help: string, read: Parameters<Metrics['readGauge']>[0]['read']): void =>
      metrics.readGauge({ name: `catalog_mirror_${name}`, help, read });
    const counter = (name: string, help: string, read: () => number): void =>
      metrics.readCounter({ name: `catalog_mirror_${name}_total`, help, read });
    const samples = (value: number | undefined) => (value === undefined ? [] : [{ labels: {}, value }]);
    const seconds = (at: number | undefined) => samples(at && at / 1000);
    gauge('lag_seconds', 'Time since the mirror last had every entry of the feed.', () => samples(this.lagSeconds()));
    gauge(
      'backlog_entries',
      'Entries stored since the mirror last had all of them, which is the least that it was behind; 0 when it has all.',
      () => this.#backlog,
    );
    gauge('position_seconds', "The mirror's position in the feed, in Unix time.", () => this.position);
    gauge('last_success_timestamp_seconds', 'When the mirror last had every entry of the feed.', () =>
      seconds(this.#currentAt),
    );
    gauge('verify_timestamp_seconds', 'When the mirror was last compared with a copy.', () =>
      seconds(this.verification?.at),
    );
    gauge('verify_differences', 'Rows that differed from the copy in the last comparison.', () =>
      samples(this.verification?.differences),
    );
    metrics.readGauge({
      name: 'catalog_mirror_state',
      help: 'What the mirror is doing: 1 for its state, 0 for the others.',
      labels: ['state'],
      read: () => STATES.map((state) => ({ labels: { state }, value: Number(state === this.state) })),
    });
    counter('entries', 'Entries of the feed that were stored.', () => this.#entries);
    counter(
      'failures',
      'Requests to the service, or to the database, that failed and were repeated.',
      () => this.#failures,
    );
    counter('copies', 'Copies of the whole catalogue that were taken.', () => this.#copies);
    metrics.addProcess();
  }

  /** Notes a failure that is followed by another attempt. */
  failed(): void {
    this.state = 'failing';
    this.#failures += 1;
  }

  /** Notes that the whole catalogue was loaded, which was not compared yet. */
  loaded(): void {
    this.verification = undefined;
    this.#copies += 1;
  }

  /** Notes a stored page. @param requestedAt - milliseconds since 1970 */
  stored(entries: number, position: number, hasMore: boolean, requestedAt: number): void {
    this.state = 'following';
    this.#entries += entries;
    this.position = position;
    this.#backlog += entries;
    if (hasMore) return;
    this.#backlog = 0;
    this.#currentAt = requestedAt;
  }

  /**
   * @returns the time since the mirror last had everything: before that happened, the time since its position; undefined
   *   before it has one
   */
  lagSeconds(now = Date.now()): number | undefined {
    const since = this.#currentAt === undefined ? this.position : this.#currentAt / 1000;
    return since === 0 ? undefined : Math.max(0, now / 1000 - since);
  }

  /** Answers /readyz: 200 while the mirror is complete and at most five minutes behind. */
  answer(request: IncomingMessage, response: ServerResponse): void {
    const isKnown = request.url?.split('?', 1)[0] === '/readyz';
    const isReady = this.#currentAt !== undefined && Date.now() - this.#currentAt < READY_WITHIN_MS;
    response.statusCode = isKnown ? (isReady ? 200 : 503) : 404;
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('Content-Type', 'application/json');
    const lag = this.lagSeconds();
    const body = isKnown
      ? { status: isReady ? 'ready' : 'not ready', state: this.state, lag_seconds: lag && Math.round(lag) }
      : { status: 404, title: 'This address has only /metrics and /readyz.' };
    response.end(`${JSON.stringify(body)}\n`);
  }
}
