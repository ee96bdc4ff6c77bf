import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Observation } from '../../client/observation.js';
import { Metrics } from '../../platform/telemetry/metrics.js';

const STATES = ['starting', 'copying', 'following', 'failing'] as const;

/** A mirror is not ready once it was last up to date so long ago, in milliseconds. */
const READY_WITHIN_MS = 300_000;

/** The state of a running mirror, as metrics and as readiness. */
export class MirrorStatus {
  readonly metrics = new Metrics();
  readonly #entries = this.#counter('entries', 'Entries of the feed that were stored.');
  readonly #failures = this.#counter(
    'failures',
    'Requests to the service, or to the database, that failed and were repeated.',
  );
  readonly #copies = this.#counter('copies', 'Copies of the whole catalogue that were taken.');
  #state: (typeof STATES)[number] = 'starting';
  /** In seconds; undefined before the mirror has one. */
  #position: number | undefined;
  /** When the mirror last had everything, in seconds since 1970. */
  #currentAt: number | undefined;
  #backlog = 0;
  /** Whether the feed has refused the mirror, so that it waits for a copy or feed that it may load. */
  #isRefused = false;

  constructor() {
    this.#gauge('lag_seconds', 'Time since the mirror was last up to date.', () => this.#lagSeconds());
    this.#gauge(
      'backlog_entries',
      'Entries stored since the mirror was last up to date, a lower bound on the backlog; 0 while it is up to date.',
      () => this.#backlog,
    );
    this.#gauge('position_seconds', "The mirror's position in the feed, in Unix time.", () => this.#position);
    this.#gauge('last_success_timestamp_seconds', 'When the mirror was last up to date.', () => this.#currentAt);
    this.metrics.readGauge({
      name: 'catalog_mirror_state',
      help: 'What the mirror is doing: 1 for its state, 0 for the others.',
      labels: ['state'],
      read: () => STATES.map((state) => ({ labels: { state }, value: Number(state === this.#state) })),
    });
    this.metrics.addProcess();
  }

  /** Counts the observations of a mirror. */
  readonly observe = (observation: Observation): void => {
    switch (observation.kind) {
      case 'retrying':
        this.#state = 'failing';
        this.#failures.inc();
        return;
      case 'loading':
      case 'progress':
        this.#state = 'copying';
        return;
      case 'loaded':
        this.#copies.inc();
        return;
      case 'following':
        this.#position = observation.position;
        return;
      case 'position-refused':
      case 'feed-replaced':
        this.#isRefused = true;
        return;
      case 'stored':
        this.#state = 'following';
        this.#isRefused = false;
        this.#position = observation.position;
        this.#entries.inc(observation.entries);
        this.#backlog = observation.hasMore ? this.#backlog + observation.entries : 0;
        if (!observation.hasMore) this.#currentAt = observation.requestedAt / 1000;
        return;
      default:
    }
  };

  /** Answers /readyz: 200 while the mirror is complete, at most five minutes behind and accepted by the feed. */
  answer(request: IncomingMessage, response: ServerResponse): void {
    const isKnown = request.url?.split('?', 1)[0] === '/readyz';
    const isCurrent = this.#currentAt !== undefined && Date.now() - this.#currentAt * 1000 < READY_WITHIN_MS;
    const isReady = isCurrent && !this.#isRefused;
    response.statusCode = isKnown ? (isReady ? 200 : 503) : 404;
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('Content-Type', 'application/json');
    const lag = this.#lagSeconds();
    const body = isKnown
      ? { status: isReady ? 'ready' : 'not ready', state: this.#state, lag_seconds: lag && Math.round(lag) }
      : { status: 404, title: 'This address has only /metrics and /readyz.' };
    response.end(`${JSON.stringify(body)}\n`);
  }

  /** @returns the time since the mirror last had everything; before that, the time since its position */
  #lagSeconds(): number | undefined {
    const since = this.#currentAt ?? this.#position;
    return since === undefined ? undefined : Math.max(0, Date.now() / 1000 - since);
  }

  #counter(name: string, help: string): ReturnType<Metrics['counter']> {
    return this.metrics.counter({ name: `catalog_mirror_${name}_total`, help });
  }

  /** Adds a gauge, which has no value while `read` returns undefined. */
  #gauge(name: string, help: string, read: () => number | undefined): void {
    this.metrics.readGauge({
      name: `catalog_mirror_${name}`,
      help,
      read: () => [read()].flatMap((value) => (value === undefined ? [] : [{ labels: {}, value }])),
    });
  }
}
