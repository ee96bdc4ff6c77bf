import type { Worker } from 'node:cluster';
import { closeConnectionInTransit } from './connection-in-transit.js';
import type { MetricsMember } from '../../telemetry/combined-metrics.js';
import type { MetricsSnapshot } from '../../telemetry/metrics.js';
import { HEARTBEAT_INTERVAL_MS, wrap, unwrap, type Order, type Report } from './protocol.js';

/**
 * How many heartbeats in a row may be missing, before the first message of the worker and after it. A process that
 * starts on a busy machine needs more time. A worker that serves answers every request within a second, and so turns
 * its event loop.
 */
const MISSING_HEARTBEATS = { starting: 30, started: 10 } as const;

export interface Ending {
  /** Exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  /** The reason that it gave, or why it could not start. */
  readonly reason?: string;
}

/** A worker process, as the primary sees it. */
export class WatchedWorker implements MetricsMember {
  readonly id: number;
  readonly pid: number | undefined;
  /** Resolves to its URL once it serves. Never resolves if the worker ends before. */
  readonly listening: Promise<string>;
  /** Resolves when it reports that nobody reads the log. */
  readonly unread: Promise<void>;
  /** Resolves when the worker has ended, in any way. */
  readonly ended: Promise<Ending>;
  readonly #worker: Worker;
  /** The order to end, once it was given. */
  #stop: Order | undefined;
  #reason: string | undefined;
  #noteUnread: () => void = () => undefined;
  #missing = 0;
  #mostMissing: number = MISSING_HEARTBEATS.starting;
  #lastMetrics: MetricsSnapshot = [];
  /** The calls that wait for its metrics. */
  #onMetrics: (() => void)[] = [];

  /** @param onHang - called before a worker that hangs is killed */
  constructor(worker: Worker, onHang: () => void) {
    this.#worker = worker;
    this.id = worker.id;
    this.pid = worker.process.pid;
    this.listening = new Promise((resolve) => {
      worker.on('message', (message: unknown) => {
        const report = unwrap(message) as Report | undefined;
        if (report === undefined) return;
        this.#handle(report);
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
      // A process that could not be started never exits. For a started one, this is a message that came too late.
      worker.on('error', (error) => {
        if (worker.process.pid === undefined) resolve({ code: null, signal: null, reason: String(error) });
      });
    });
    closeConnectionInTransit(worker);
    const watching = setInterval(() => {
      // Counts heartbeats, not time: a primary that was stopped itself must not blame its workers.
      if (++this.#missing <= this.#mostMissing) return;
      this.#missing = 0;
      onHang();
      this.kill();
    }, HEARTBEAT_INTERVAL_MS);
    void this.ended.then(() => clearInterval(watching));
  }

  /** Makes the worker finish its requests and end. @param drains - whether it first goes on serving */
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

  kill(): void {
    // Not worker.kill(): that waits for a worker that hangs.
    this.#worker.process.kill('SIGKILL');
  }

  #handle(report: Report): void {
    this.#missing = 0;
    this.#mostMissing = MISSING_HEARTBEATS.started;
    if (report.kind === 'metrics') {
      this.#lastMetrics = report.snapshot;
      for (const resolve of this.#onMetrics.splice(0)) resolve();
    }
    if (report.kind === 'unread') this.#noteUnread();
    if (report.kind === 'failed') this.#reason = report.reason;
    // The worker may have missed an order that was sent before its first message.
    if (this.#stop) this.#order(this.#stop);
  }

  #order(order: Order): void {
    // When an order does not arrive, the worker is dying, and 'exit' reports that.
    if (this.#worker.isConnected()) this.#worker.process.send(wrap(order), undefined, undefined, () => undefined);
  }
}
