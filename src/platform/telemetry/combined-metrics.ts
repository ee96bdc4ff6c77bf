import { withTimeout } from '../async/with-timeout.js';
import { combine, toText, type MetricsSnapshot, type MetricsSource } from './metrics.js';

/** Bound on the answer of one process, in milliseconds: a scraper commonly waits ten seconds. */
const ANSWER_TIMEOUT_MS = 500;

/** A process whose metrics are part of the whole. */
export interface MetricsMember {
  /** Its last answer; empty at first. */
  readonly lastMetrics: MetricsSnapshot;
  /** Asks for a new answer. Resolves when it has arrived, which may never happen. */
  askForMetrics(): Promise<unknown>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<unknown>;
}

export interface MembersState {
  readonly answering: number;
  /** Alive, and did not answer the last question. */
  readonly silent: number;
  readonly gone: number;
}

/**
 * The metrics of several processes as one.
 *
 * A counter must never shrink: Prometheus would take that for a new beginning and count all of it again. So the last
 * answer stands for a process that does not answer, and the counts of an ended process stay. What a killed process
 * counted after its last answer is lost.
 */
export class CombinedMetrics implements MetricsSource {
  readonly #members = new Set<MetricsMember>();
  readonly #silent = new Set<MetricsMember>();
  #ofGone: MetricsSnapshot = [];
  #gone = 0;

  /** @param own - metrics of this process that belong to the whole */
  constructor(private readonly own: () => Promise<MetricsSnapshot>) {}

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
    const own = await this.own();
    const ofMembers = [...this.#members].map(({ lastMetrics }) => lastMetrics);
    return toText(combine([own, ...ofMembers, this.#ofGone]));
  }

  async #ask(member: MetricsMember): Promise<void> {
    const answered = Promise.race([member.askForMetrics(), member.ended]);
    const hasAnswered = await withTimeout(answered, ANSWER_TIMEOUT_MS).then(
      () => true,
      () => false,
    );
    if (hasAnswered) this.#silent.delete(member);
    else if (this.#members.has(member)) this.#silent.add(member);
  }
}
