import type { Worker } from 'node:cluster';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { OperatorError } from '../../../errors.js';
import { WatchedWorker, type Ending } from './watched-worker.js';

/** A worker that lived for this long, in milliseconds, was sound: when it dies, it is replaced at once. */
const SOUND_LIFE_MS = 5_000;

/** The pauses between replacements of workers that die young, in milliseconds. The first one is replaced at once. */
const PAUSE_MS = { first: 100, factor: 2, max: 5_000 } as const;

/** Bound on the orderly end of a worker after its drain, in milliseconds: more than the service needs. */
const STOP_TIMEOUT_MS = 8_000;

export interface SupervisorOptions {
  readonly count: number;
  readonly fork: () => Worker;
  readonly onStarted: (worker: WatchedWorker) => void;
  readonly log: Logger;
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

  constructor(private readonly options: SupervisorOptions) {}

  /**
   * Starts the first worker alone, which shows whether a start succeeds, and then the others.
   *
   * @returns the URL, once all of them listen
   * @throws OperatorError with the reason that a worker gave for its failed start. Other workers may be running then:
   *   call stop()
   */
  async start(): Promise<string> {
    const url = await this.#startOne();
    await Promise.all(Array.from({ length: this.options.count - 1 }, () => this.#startOne()));
    return url;
  }

  /**
   * Lets the workers finish their requests, and waits until all have ended. Takes a bounded time and never rejects.
   *
   * @param drainSeconds - how long the workers first go on serving; 0 for not at all
   */
  async stop(drainSeconds = 0): Promise<void> {
    this.#stopping.abort();
    for (const worker of this.#workers) worker.stop(drainSeconds > 0);
    const timer = setTimeout(
      () => {
        for (const worker of this.#workers) {
          this.options.log.error({ worker: worker.id, pid: worker.pid }, 'worker did not stop in time: killed');
          worker.kill();
        }
      },
      drainSeconds * 1_000 + STOP_TIMEOUT_MS,
    );
    await Promise.all([...this.#workers].map(({ ended }) => ended));
    clearTimeout(timer);
  }

  #startOne(): Promise<string> {
    return new Promise((resolve, reject) => {
      void this.#keep(resolve, (ending) => reject(new OperatorError(whyNotStarted(ending))));
    });
  }

  /** Runs a worker, and another one when it ends, unless the first ends before it listens. */
  async #keep(onListening: (url: string) => void, onFailed: (ending: Ending) => void): Promise<void> {
    const { signal } = this.#stopping;
    let hasStarted = false;
    let youngDeaths = 0;
    for (;;) {
      const startedAt = performance.now();
      const { ending, hasListened } = await this.#run(onListening);
      hasStarted ||= hasListened;
      if (!hasStarted) {
        onFailed(ending);
        return;
      }
      if (signal.aborted) return;
      youngDeaths = performance.now() - startedAt < SOUND_LIFE_MS ? youngDeaths + 1 : 0;
      const pauseMs = pauseAfter(youngDeaths);
      this.options.log.warn({ ...ending, restart_in_ms: pauseMs }, 'worker ended');
      try {
        await delay(pauseMs, undefined, { signal });
      } catch {
        return; // Told to stop meanwhile.
      }
    }
  }

  /** Runs one worker to its end. */
  async #run(onListening: (url: string) => void): Promise<{ ending: Ending; hasListened: boolean }> {
    const { fork, log } = this.options;
    let worker: WatchedWorker;
    try {
      worker = new WatchedWorker(fork(), () => log.error(name, 'worker hangs: killed'));
    } catch (error) {
      const reason = `no process could be started: ${String(error)}`;
      return { ending: { code: null, signal: null, reason }, hasListened: false };
    }
    const name = { worker: worker.id, pid: worker.pid };
    this.#workers.add(worker);
    this.options.onStarted(worker);
    let hasListened = false;
    void worker.listening.then((url) => {
      hasListened = true;
      log.info(name, 'worker listening');
      onListening(url);
    });
    const ending = await worker.ended;
    this.#workers.delete(worker);
    return { ending: { ...name, ...ending }, hasListened };
  }
}

function pauseAfter(youngDeaths: number): number {
  if (youngDeaths <= 1) return 0;
  return Math.min(PAUSE_MS.first * PAUSE_MS.factor ** (youngDeaths - 2), PAUSE_MS.max);
}

function whyNotStarted({ reason, signal, code }: Ending): string {
  return reason ?? `A server process ended before it could serve (${signal ?? `exit code ${code ?? 'unknown'}`}).`;
}
