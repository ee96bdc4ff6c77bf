import type { Worker } from 'node:cluster';
import type { MetricsSnapshot } from '../../telemetry/metrics.js';
import { HEARTBEAT_INTERVAL_MS, wrap, unwrap, type Order, type Report } from './protocol.js';

/** In a worker process: the connection to the primary, which started the worker and watches it. */
export class WorkerLink {
  /** The number of this worker. A worker that replaces another one gets a new number. */
  readonly id: number;
  readonly #worker: Worker;
  readonly #heartbeat: NodeJS.Timeout;
  #measure = (): Promise<MetricsSnapshot> => Promise.resolve([]);

  /**
   * @param worker - `cluster.worker`
   * @param onStop - called when this process must end in order: on the primary's order, or when the primary is gone.
   *   Its argument says whether the process first goes on serving
   */
  constructor(worker: Worker, onStop: (drains: boolean) => void) {
    this.id = worker.id;
    this.#worker = worker;
    worker.on('message', (message: unknown) => {
      const order = unwrap(message) as Order | undefined;
      if (order?.kind === 'stop') onStop(order.drains);
      // Without an answer the primary uses the last one.
      if (order?.kind === 'measure') this.sendMetrics().catch(() => undefined);
    });
    worker.once('disconnect', () => {
      // Otherwise Node.js would end the process here, in the middle of requests.
      worker.exitedAfterDisconnect = true;
      onStop(false);
    });
    this.#heartbeat = setInterval(() => this.#report({ kind: 'heartbeat' }), HEARTBEAT_INTERVAL_MS).unref();
    this.#report({ kind: 'heartbeat' });
  }

  /** From now on answers the primary's questions for metrics. */
  offerMetrics(measure: () => Promise<MetricsSnapshot>): void {
    this.#measure = measure;
  }

  async sendMetrics(): Promise<void> {
    this.#report({ kind: 'metrics', snapshot: await this.#measure() });
  }

  /** Reports that the worker serves. @param url - where */
  listening(url: string): void {
    this.#report({ kind: 'listening', url });
  }

  /** Reports that nobody reads the log of all processes any more. */
  unread(): void {
    this.#report({ kind: 'unread' });
  }

  failed(reason: string): void {
    this.#report({ kind: 'failed', reason });
  }

  /** Ends the connection, which would keep the process alive. Earlier messages still arrive. */
  leave(): void {
    clearInterval(this.#heartbeat);
    if (this.#worker.isConnected()) this.#worker.process.disconnect();
  }

  #report(report: Report): void {
    // Without a callback, Node.js would throw an error that nobody can catch. The event 'disconnect' reports a lost
    // primary.
    if (this.#worker.isConnected()) this.#worker.process.send(wrap(report), undefined, undefined, () => undefined);
  }
}
