import { setTimeout as delay } from 'node:timers/promises';
import { combine, toText, type MetricsSnapshot, type MetricsSource } from './metrics.js';

/** Bound on the answer of one process, in milliseconds: a scraper commonly waits ten seconds. */
const ANSWER_TIMEOUT_MS = 500;

/** A process whose metrics are part of the whole. */
export interface MetricsMember {
  /** What it said last; nothing at first. */
  readonly lastMetrics: MetricsSnapshot;
  /** Asks it to say more. Resolves when it has; may take for ever. */
  askForMetrics(): Promise<unknown>;
  /** Resolves when the process is gone. */
  readonly ended: Promise<unknown>;
}

/** How many processes there are, or were. */
export interface MembersState {
  /** There, and answered when they were last asked. */
  readonly answering: number;
  /** There, but did not. */
  readonly silent: number;
  readonly gone: number;
}

/**
 * The metrics of several processes as one.
 *
 * What only grows must never shrink, or Prometheus would take it for a new beginning and count all of it again. So a
 * process that does not answer stands with what it said last, and of one that is gone its counts stay. What a process that
 * was killed counted since it was last asked is lost.
 */
export class CombinedMetrics implements MetricsSource {
  readonly #members = new Set<MetricsMember>();
  readonly #silent = new Set<MetricsMember>();
  readonly #own: () => Promise<MetricsSnapshot>;
  #ofGone: MetricsSnapshot = [];
  #gone = 0;

  /** @param own - metrics of this process that belong to the whole */
  constructor(own: () => Promise<MetricsSnapshot>) {
    this.#own = own;
  }

  get state(): MembersState {
    return { answering: this.#members.size - this.#silent.size, silent: this.#silent.size, gone: this.#gone };
  }

  add(member: MetricsMember): void {
    this.#members.add(member);
    void member.ended.then(() => {
      this.#members.delete(member);
      this.#silent.delete(member);
      this.#gone += 1;
      this.#ofGone = combine([this.#ofGone, member.lastMetrics.filter(({ type }) => type !== 'gauge')]);
    });
  }

  async text(): Promise<string> {
    await Promise.all([...this.#members].map((member) => this.#ask(member)));
    const own = await this.#own();
    const ofMembers = [...this.#members].map(({ lastMetrics }) => lastMetrics);
    return toText(combine([own, ...ofMembers, this.#ofGone]));
  }

  async #ask(member: MetricsMember): Promise<void> {
    const settled = new AbortController();
    const hasAnswered = await Promise.race([
      member.askForMetrics().then(() => true),
      member.ended.then(() => true),
      delay(ANSWER_TIMEOUT_MS, false, { signal: settled.signal }).catch(() => false),
    ]);
    settled.abort();
    if (hasAnswered) this.#silent.delete(member);
    else if (this.#members.has(member)) this.#silent.add(member);
  }
}
