import { setTimeout as delay } from 'node:timers/promises';
import { combine, toText, type MetricsSnapshot, type MetricsSource } from './metrics.js';

/** Bound on the answer of one process, in milliseconds: a scraper commonly waits ten seconds. */
const ANSWER_TIMEOUT_MS = 500;

/** A process whose metrics are part of the whole. */
export interface MetricsMember {
  /** Its metrics as they are now. May take for ever, or fail. */
  snapshot(): Promise<MetricsSnapshot>;
  /** Resolves when the process is gone. */
  readonly ended: Promise<unknown>;
}

/** What became of the processes. */
export interface MembersState {
  /** There, and answered when they were last asked. */
  readonly answering: number;
  /** There, but did not. */
  readonly silent: number;
  /** Gone. */
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
  readonly #members = new Map<MetricsMember, { last: MetricsSnapshot; isSilent: boolean }>();
  readonly #own: MetricsMember['snapshot'];
  #ofGone: MetricsSnapshot = [];
  #gone = 0;

  /** @param own - metrics of this process that belong to the whole */
  constructor(own: MetricsMember['snapshot']) {
    this.#own = own;
  }

  get state(): MembersState {
    const silent = [...this.#members.values()].filter(({ isSilent }) => isSilent).length;
    return { answering: this.#members.size - silent, silent, gone: this.#gone };
  }

  add(member: MetricsMember): void {
    this.#members.set(member, { last: [], isSilent: false });
    void member.ended.then(() => this.#remove(member));
  }

  async text(): Promise<string> {
    await Promise.all([...this.#members.keys()].map((member) => this.#ask(member)));
    const own = await this.#own();
    const snapshots = [...this.#members.values()].map(({ last }) => last);
    return toText(combine([own, ...snapshots, this.#ofGone]));
  }

  async #ask(member: MetricsMember): Promise<void> {
    const answer = member.snapshot().then(
      (last) => {
        // One that comes late is still news, unless the process is gone by now.
        if (this.#members.has(member)) this.#members.set(member, { last, isSilent: false });
        return true;
      },
      () => false,
    );
    const inTime = new AbortController();
    const hasAnswered = await Promise.race([
      answer,
      member.ended.then(() => true),
      delay(ANSWER_TIMEOUT_MS, false, { signal: inTime.signal }).catch(() => false),
    ]);
    inTime.abort();
    const known = this.#members.get(member);
    if (known && !hasAnswered) this.#members.set(member, { ...known, isSilent: true });
  }

  #remove(member: MetricsMember): void {
    const known = this.#members.get(member);
    if (!known) return;
    this.#members.delete(member);
    this.#gone += 1;
    this.#ofGone = combine([this.#ofGone, known.last.filter(({ type }) => type !== 'gauge')]);
  }
}
