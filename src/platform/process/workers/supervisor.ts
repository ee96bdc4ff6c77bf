import type { Worker } from 'node:cluster';
import { once, setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { OperatorError } from '../../../errors.js';
import { WatchedWorker, type Ending } from './watched-worker.js';

/** A worker that served for this long, in milliseconds, was sound: when it dies, it is replaced at once. */
const SOUND_LIFE_MS = 5_000;

/** The pauses between replacements of workers that die young, in milliseconds. The first one is replaced at once. */
const PAUSE_MS = { first: 100, factor: 2, max: 5_000 } as const;

/** Bound on the orderly end of a worker after its drain, in milliseconds: more than the service needs. */
const STOP_TIMEOUT_MS = 9_000;

export interface SupervisorOptions {
  readonly count: number;
  readonly fork: () => Worker;
  readonly onStarted: (worker: WatchedWorker) => void;
  /** Called when the first worker listens. */
  readonly onServing: () => void;
  /** Aborted when the server is about to end. From then on no worker is replaced. */
  readonly ending: AbortSignal;
  readonly log: Logger;
}

/** A worker that was started. */
interface Run {
  /** For how long it has served, in milliseconds; negative if it never did. */
  readonly servedMs: () => number;
  /** Resolves to its URL once it serves. Never resolves if it ends before. */
  readonly listening: Promise<string>;
  readonly ended: Promise<Ending>;
}

/**
 * Runs in the primary process. Starts workers, replaces those that die or hang, and stops them all.
 *
 * A worker that hangs, stopped or in an endless loop, is killed after ten seconds and replaced. Workers that die again
 * and again are replaced after growing pauses. So a lasting fault does not use up the processor.
 */
export class Supervisor {
  readonly #workers = new Set<WatchedWorker>();
  readonly #stopping = new AbortController();
  /** Aborted when dead workers are not replaced any more. */
  readonly #ending: AbortSignal;

  constructor(private readonly options: SupervisorOptions) {
    this.#ending = AbortSignal.any([options.ending, this.#stopping.signal]);
    // Each worker may be waiting for its replacement, and a start for all of them.
    setMaxListeners(options.count + 1, this.#ending);
  }

  /**
   * Starts the first worker alone, which shows whether a start succeeds, and then the others. The first one serves by
   * then: another one that cannot start yet is replaced like any worker that dies.
   *
   * @returns the URL, once each worker listens or has ended, or the server is about to end
   * @throws OperatorError with the reason that the first worker gave for its failed start
   */
  async start(): Promise<string> {
    const first = this.#run();
    const url = await Promise.race([
      first.listening,
      first.ended.then((ending) => Promise.reject(new OperatorError(whyNotStarted(ending)))),
    ]);
    this.options.onServing();
    if (this.#ending.aborted) return url;
    const others = Array.from({ length: this.options.count - 1 }, () => this.#run());
    for (const run of [first, ...others]) void this.#keep(run);
    const started = Promise.all(others.map(({ listening, ended }) => Promise.race([listening, ended])));
    await Promise.race([started, once(this.#ending, 'abort')]);
    return url;
  }

  /**
   * Lets the workers finish their requests, and waits until all have ended. Takes a bounded time and never rejects.
   *
   * @param drainSeconds - how long the workers first keep serving; undefined to end without a drain
   */
  async stop(drainSeconds?: number): Promise<void> {
    this.#stopping.abort();
    for (const worker of this.#workers) worker.stop(drainSeconds !== undefined);
    const timer = setTimeout(
      () => {
        for (const worker of this.#workers) {
          this.options.log.error({ worker: worker.id, pid: worker.pid }, 'worker did not stop in time: killed');
          worker.kill();
        }
      },
      (drainSeconds ?? 0) * 1_000 + STOP_TIMEOUT_MS,
    );
    await Promise.all([...this.#workers].map(({ ended }) => ended));
    clearTimeout(timer);
  }

  /** Replaces a worker that ends by another one, again and again. */
  async #keep(run: Run): Promise<void> {
    let youngDeaths = 0;
    for (;;) {
      const ending = await run.ended;
      if (this.#ending.aborted) return;
      youngDeaths = run.servedMs() < SOUND_LIFE_MS ? youngDeaths + 1 : 0;
      const pauseMs = pauseAfter(youngDeaths);
      this.options.log.warn({ ...ending, restart_in_ms: pauseMs }, 'worker ended');
      try {
        await delay(pauseMs, undefined, { signal: this.#ending });
      } catch {
        return; // Told to stop meanwhile.
      }
      run = this.#run();
    }
  }

  /** Starts a worker. Never throws: a process that cannot be started has ended. */
  #run(): Run {
    const { fork, log, onStarted } = this.options;
    let listensSince = Infinity;
    const servedMs = (): number => performance.now() - listensSince;
    let worker: WatchedWorker;
    try {
      worker = new WatchedWorker(fork(), () => log.error(name, 'worker hangs: killed'));
    } catch (error) {
      const reason = `no process could be started: ${String(error)}`;
      return {
        servedMs,
        listening: new Promise(() => undefined),
        ended: Promise.resolve({ code: null, signal: null, reason }),
      };
    }
    const name = { worker: worker.id, pid: worker.pid };
    this.#workers.add(worker);
    onStarted(worker);
    void worker.listening.then(() => {
      listensSince = performance.now();
      log.info(name, 'worker listening');
    });
    const ended = worker.ended.then((ending) => {
      this.#workers.delete(worker);
      return { ...name, ...ending };
    });
    return { servedMs, listening: worker.listening, ended };
  }
}

function pauseAfter(youngDeaths: number): number {
  if (youngDeaths <= 1) return 0;
  return Math.min(PAUSE_MS.first * PAUSE_MS.factor ** (youngDeaths - 2), PAUSE_MS.max);
}

function whyNotStarted({ reason, signal, code }: Ending): string {
  return reason ?? `A server process ended before it could serve (${signal ?? `exit code ${code ?? 'unknown'}`}).`;
}
