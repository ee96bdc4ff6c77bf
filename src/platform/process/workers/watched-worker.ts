import type { Worker } from 'node:cluster';
import { closeConnectionInTransit } from './connection-in-transit.js';
import type { MetricsMember } from '../../telemetry/combined-metrics.js';
import type { MetricsSnapshot } from '../../telemetry/metrics.js';
import { BEAT_INTERVAL_MS, isReport, seal, unseal, type Order, type Report } from './protocol.js';

/**
 * So many beats in a row may be missing, before the worker has said its first word and after: a process that starts on a
 * busy machine needs its time, but one that serves answers every request within a second, and so turns its event loop.
 */
const MISSING_BEATS = { starting: 30, started: 10 } as const;

/** How a worker ended. */
export interface Ending {
  /** Exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  /** What it said itself, or why it could not even start. */
  readonly reason?: string;
}

/** A worker process, as the primary sees it. */
export class WatchedWorker implements MetricsMember {
  readonly id: number;
  readonly pid: number | undefined;
  /** Resolves to its URL once it serves. Never does if it ends before. */
  readonly listening: Promise<string>;
  /** Resolves when it says that nobody reads the log. */
  readonly unread: Promise<void>;
  /** Resolves when it is gone, however it ends. */
  readonly ended: Promise<Ending>;
  readonly #worker: Worker;
  /** The order to end, once it is given. */
  #stop: Order | undefined;
  #reason: string | undefined;
  #noteUnread: () => void = ignore;
  #missing = 0;
  #patience: number = MISSING_BEATS.starting;
  #lastMetrics: MetricsSnapshot = [];
  /** Those who wait for its metrics. */
  #onMetrics: (() => void)[] = [];

  /** @param onHang - called before it is killed because it hangs */
  constructor(worker: Worker, onHang: () => void) {
    this.#worker = worker;
    this.id = worker.id;
    this.pid = worker.process.pid;
    this.listening = new Promise((resolve) => {
      worker.on('message', (message: unknown) => {
        const report = unseal(message);
        if (!report || !isReport(report)) return;
        this.#hear(report);
        if (report.kind === 'listening') resolve(report.url);
      });
    });
    this.unread = new Promise((resolve) => {
      this.#noteUnread = resolve;
    });
    this.ended = new Promise((resolve) => {
      worker.once('exit', (code: number | null, signal: string | null) => {
        resolve({ code, signal, ...(this.#reason !== undefined && { reason: this.#reason }) });
      });
      // A process that could not be started never exits. Of one that was, this is a message that met its death.
      worker.on('error', (error) => {
        if (worker.process.pid === undefined) resolve({ code: null, signal: null, reason: String(error) });
      });
    });
    closeConnectionInTransit(worker);
    const watching = setInterval(() => {
      // Beats are counted, not time: a primary that was stopped itself must not blame its workers for it.
      if (++this.#missing <= this.#patience) return;
      this.#missing = 0;
      onHang();
      this.kill();
    }, BEAT_INTERVAL_MS);
    void this.ended.then(() => clearInterval(watching));
  }

  /** Asks it to finish what is in flight and to end. @param drains - whether it goes on serving first */
  stop(drains: boolean): void {
    this.#stop = { kind: 'stop', drains };
    this.#order(this.#stop);
  }

  get lastMetrics(): MetricsSnapshot {
    return this.#lastMetrics;
  }

  askForMetrics(): Promise<void> {
    return new Promise((resolve) => {
      this.#onMetrics.push(resolve);
      this.#order({ kind: 'measure' });
    });
  }

  /** Ends it at once. */
  kill(): void {
    // Not worker.kill(), which waits for a worker that hangs.
    this.#worker.process.kill('SIGKILL');
  }

  #hear(report: Report): void {
    this.#missing = 0;
    this.#patience = MISSING_BEATS.started;
    if (report.kind === 'metrics') {
      this.#lastMetrics = report.snapshot;
      for (const resolve of this.#onMetrics.splice(0)) resolve();
    }
    if (report.kind === 'unread') this.#noteUnread();
    if (report.kind === 'failed') this.#reason = report.reason;
    // What it was told before its first word may not have been heard.
    if (this.#stop) this.#order(this.#stop);
  }

  #order(order: Order): void {
    if (this.#worker.isConnected()) this.#worker.process.send(seal(order), undefined, undefined, ignore);
  }
}

function ignore(): void {
  // An order that does not arrive: the worker is dying, and 'exit' tells.
}
