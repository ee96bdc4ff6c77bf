import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import { OperatorError } from '../../errors.js';
import { backoff, type BackoffBounds } from '../async/backoff.js';

/** A worker that has served for this long, in milliseconds, is replaced at once when it ends. */
const SOUND_LIFE_MS = 5_000;

/** The pauses before replacements of workers that end earlier. */
const PAUSES: BackoffBounds = { firstMs: 100, longestMs: 5_000 };

/** How long a worker may take to end after its drain, in milliseconds: more than the service needs. */
const STOP_TIMEOUT_MS = 9_000;

/** The type of the message that stops a worker. Other packages use the same channel. */
const STOP = 'catalog:stop';

interface StopOrder {
  readonly type: typeof STOP;
  /** Whether the worker first keeps serving, for as long as the settings say. */
  readonly drains: boolean;
}

/** A worker whose process has not ended. */
interface RunningWorker {
  readonly worker: Worker;
  readonly ended: Promise<unknown>;
  listens: boolean;
}

/** In the primary process: starts workers by `node:cluster`, replaces each that ends, and stops them all. */
export class Workers {
  readonly #running = new Set<RunningWorker>();
  #ended = 0;
  /** Whether a worker that ends is replaced: after a successful start, and until the stop. */
  #replaces = false;

  constructor(
    private readonly count: number,
    private readonly log: Logger,
  ) {}

  /** How many workers run, and how many have ended so far. */
  get counts(): { readonly running: number; readonly ended: number } {
    return { running: this.#running.size, ended: this.#ended };
  }

  /**
   * Starts the first worker alone, which shows whether a start succeeds, and then the others.
   *
   * @returns the port, once the first worker listens
   * @throws OperatorError when the first worker cannot start; the worker writes the reason to standard error
   */
  async start(): Promise<number> {
    const first = this.#run();
    const port = await new Promise<number>((resolve, reject) => {
      first.once('listening', (address) => resolve(address.port));
      first.once('exit', () => reject(new OperatorError('The first worker process could not start.')));
      first.once('error', reject);
    });
    this.#replaces = true;
    for (let i = 1; i < this.count; i += 1) this.#run();
    return port;
  }

  /**
   * Lets the workers finish their requests, and waits until all have ended. Takes a bounded time and never rejects.
   *
   * @param drainSeconds - how long the workers first keep serving; undefined to stop without a drain
   */
  async stop(drainSeconds?: number): Promise<void> {
    this.#replaces = false;
    const order: StopOrder = { type: STOP, drains: drainSeconds !== undefined };
    for (const { worker, listens } of this.#running) {
      // A worker that is still starting has no clients, and may not read the order.
      if (listens) worker.send(order, () => undefined);
      else worker.process.kill('SIGKILL');
    }
    const timer = setTimeout(
      () => {
        for (const { worker } of this.#running) {
          this.log.error(nameOf(worker), 'worker did not stop in time: killed');
          worker.process.kill('SIGKILL');
        }
      },
      (drainSeconds ?? 0) * 1_000 + STOP_TIMEOUT_MS,
    );
    await Promise.all([...this.#running].map(({ ended }) => ended));
    clearTimeout(timer);
  }

  /** @param youngEnds - how many predecessors in a row have ended young */
  #run(youngEnds = 0): Worker {
    const worker = cluster.fork();
    let soundFrom = Infinity;
    const ended = new Promise<object>((resolve) => {
      worker.once('exit', (code: number | null, signal: string | null) => resolve({ code, signal }));
      worker.on('error', (err) => {
        // The process could not be created. Otherwise a message did not reach a worker that is about to end.
        if (worker.process.pid === undefined) resolve({ err });
      });
    });
    const running: RunningWorker = { worker, ended, listens: false };
    this.#running.add(running);
    worker.once('listening', () => {
      running.listens = true;
      soundFrom = performance.now() + SOUND_LIFE_MS;
      this.log.info(nameOf(worker), 'worker listening');
    });
    void ended.then((ending) => {
      this.#running.delete(running);
      this.#ended += 1;
      if (!this.#replaces) return;
      const young = performance.now() < soundFrom ? youngEnds + 1 : 0;
      const pauseMs = Math.round(backoff(young, PAUSES));
      this.log.warn({ ...nameOf(worker), ...ending, restart_in_ms: pauseMs }, 'worker ended');
      setTimeout(() => {
        if (this.#replaces) this.#run(young);
      }, pauseMs);
    });
    return worker;
  }
}

/**
 * In a worker process: stops it when the primary orders so, or has ended.
 *
 * @param stop - its argument says whether the worker first keeps serving
 */
export function followPrimary(worker: Worker, stop: (drains: boolean) => void): void {
  worker.on('message', (message: Partial<StopOrder> | undefined) => {
    if (message?.type === STOP) stop(message.drains === true);
  });
  worker.once('disconnect', () => {
    // Otherwise Node.js would end the process here, in the middle of requests.
    worker.exitedAfterDisconnect = true;
    stop(false);
  });
}

function nameOf({ id, process: { pid } }: Worker): { worker: number; pid: number | undefined } {
  return { worker: id, pid };
}
