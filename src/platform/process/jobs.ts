import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { recurring, type Recurring } from '../async/recurring.js';
import { withTimeout } from '../async/with-timeout.js';
import { isTimeout } from '../postgres/errors.js';

/** The rows of a step: a timeout halves them, and a round that succeeds adds some. */
const ROWS = { most: 1_000, least: 50, added: 100 } as const;

/** The longest pause after a failure, and from the start of a server to the first round, in milliseconds. */
const LONGEST_PAUSE_MS = 10_000;

/** The first of two numbers for PostgreSQL's advisory locks, "jobs" in ASCII. The second is of the job's name. */
const TURN_LOCK = 0x6a6f6273;

/** Background work, repeated in rounds. A round takes steps until nothing is left to do. */
export interface Job {
  /** As in the log, in metrics and on the status page, such as `save usage`. */
  readonly name: string;
  /** From the end of a successful round to the next, in milliseconds. It varies, so that servers do not act in step. */
  readonly intervalMs: number;
  /** Whether one server at a time does it for all: then each step is a transaction. */
  readonly isShared?: boolean;
  /** Whether it has one more round when the server stops, with `stopping` aborted. */
  readonly isLast?: boolean;
  /**
   * Does a part of the work: it acts on a bounded number of rows, so that it takes a fraction of a second.
   *
   * @param rows - the most to act on
   * @param stopping - aborted when the server stops
   * @returns whether there may be more to do
   * @throws any error: the step is repeated later
   */
  readonly step: (db: Knex, rows: number, stopping: AbortSignal) => Promise<boolean>;
}

/** How a job is doing, as this server sees it. */
export interface JobState {
  /** When its last round succeeded, on any server if it is shared, in milliseconds since 1970; at first the start. */
  succeededAt: number;
  /** Since when each round has failed here; undefined if the last one did not. */
  failingSince: number | undefined;
  /** How many rounds have failed here. */
  failures: number;
  /** How many rows a step may act on at the moment. */
  rows: number;
  /** When the next round is due, on the clock of `performance.now()`. */
  dueAt: number;
}

interface Running {
  readonly job: Job;
  readonly state: JobState;
  readonly work: Recurring;
}

/**
 * Runs jobs on separate connections, never on those of requests. A failure is logged once, with its job, and so is the
 * recovery.
 */
export class Jobs {
  readonly #running: Running[] = [];
  readonly #stopping = new AbortController();

  /** @param db - where jobs run @param speed - divides the intervals, for tests */
  constructor(
    private readonly db: Knex,
    private readonly log: Logger,
    private readonly speed = 1,
  ) {}

  /** By name. */
  get states(): ReadonlyMap<string, Readonly<JobState>> {
    return new Map(this.#running.map(({ job, state }) => [job.name, state]));
  }

  /** Starts a job. Its first round comes within {@link LONGEST_PAUSE_MS}. */
  start(job: Job): void {
    const state = { succeededAt: Date.now(), failingSince: undefined, failures: 0, rows: ROWS.most, dueAt: 0 };
    const act = async (): Promise<void> => {
      if (performance.now() >= state.dueAt) await this.#run(job, state);
    };
    this.#running.push({ job, state, work: recurring(act, this.#pauseMs(job)) });
  }

  /**
   * Ends all jobs after their step in progress. Jobs marked `isLast` have one more round.
   *
   * @throws Error when that takes longer than the bound
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    const end = async ({ job, state, work }: Running): Promise<void> => {
      await work.stop();
      if (job.isLast) await this.#run(job, state);
    };
    await withTimeout(Promise.all(this.#running.map(end)), timeoutMs);
  }

  #pauseMs({ intervalMs }: Job): number {
    return Math.min(intervalMs, LONGEST_PAUSE_MS) / this.speed;
  }

  /** How long a job is done for, in milliseconds. A pause may be shorter than on average. */
  #intervalMs(job: Job): number {
    return job.intervalMs / this.speed - this.#pauseMs(job) / 2;
  }

  /** Runs a round. Never rejects. */
  async #run(job: Job, state: JobState): Promise<void> {
    const { signal } = this.#stopping;
    try {
      let turn = await this.#step(job, state);
      while (turn === 'more' && (job.isLast || !signal.aborted)) turn = await this.#step(job, state);
      if (typeof turn === 'string') return;
      state.succeededAt = Date.now() - turn.doneMsAgo;
      state.dueAt = performance.now() - turn.doneMsAgo + this.#intervalMs(job);
      state.rows = Math.min(ROWS.most, state.rows + ROWS.added);
      if (state.failingSince !== undefined) this.log.info({ job: job.name }, `job "${job.name}" works again`);
      state.failingSince = undefined;
    } catch (error) {
      state.failures += 1;
      if (isTimeout(error)) state.rows = Math.max(ROWS.least, Math.floor(state.rows / 2));
      if (state.failingSince === undefined) {
        this.log.warn({ err: error, job: job.name }, `job "${job.name}" failed; trying again until it succeeds`);
      }
      state.failingSince ??= Date.now();
    }
  }

  async #step(job: Job, { rows }: JobState): Promise<Turn> {
    const act = async (db: Knex): Promise<Turn> =>
      (await job.step(db, rows, this.#stopping.signal)) ? 'more' : { doneMsAgo: 0 };
    if (!job.isShared) return act(this.db);
    return this.db.transaction(async (transaction) => {
      const { name } = job;
      const { rows: found } = await transaction.raw<{ rows: { isOurs: boolean; doneMsAgo: number | null }[] }>(
        `select pg_try_advisory_xact_lock(${TURN_LOCK}, hashtext(:name)) as "isOurs",
                (select extract(epoch from clock_timestamp() - done_at)::float8 * 1000
                   from jobs where name = :name) as "doneMsAgo"`,
        { name },
      );
      const { isOurs = false, doneMsAgo = null } = found[0] ?? {};
      if (!isOurs) return 'taken';
      if (doneMsAgo !== null && doneMsAgo < this.#intervalMs(job)) return { doneMsAgo };
      const turn = await act(transaction);
      if (turn !== 'more') {
        await transaction.raw(
          `insert into jobs (name, done_at) values (?, clock_timestamp())
           on conflict (name) do update set done_at = excluded.done_at`,
          [name],
        );
      }
      return turn;
    });
  }
}

/** The outcome of a step: the job is done, has more to do, or another server is doing it. */
type Turn = { readonly doneMsAgo: number } | 'more' | 'taken';
