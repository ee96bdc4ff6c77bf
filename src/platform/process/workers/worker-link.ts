import type { Worker } from 'node:cluster';
import type { MetricsSnapshot } from '../../telemetry/metrics.js';
import { BEAT_INTERVAL_MS, seal, unseal, type Report } from './protocol.js';

/** In a worker process: the connection to the primary, which started it and watches it. */
export class WorkerLink {
  /** Number of this worker. A worker that replaces another has a number of its own. */
  readonly id: number;
  readonly #worker: Worker;
  readonly #beating: NodeJS.Timeout;
  #measure = (): Promise<MetricsSnapshot> => Promise.resolve([]);

  /**
   * @param worker - `cluster.worker`
   * @param onStop - called when this process is to end in order: the primary says so, or is gone; told whether to go on
   *   serving first
   */
  constructor(worker: Worker, onStop: (drains: boolean) => void) {
    this.id = worker.id;
    this.#worker = worker;
    worker.on('message', (message: unknown) => {
      const order = unseal(message);
      if (order?.kind === 'stop') onStop(order.drains);
      // Without an answer the primary goes by the last one.
      if (order?.kind === 'measure') this.tellMetrics().catch(ignore);
    });
    worker.once('disconnect', () => {
      // Unless told that this was meant, Node.js would end the process right here, with requests in flight.
      worker.exitedAfterDisconnect = true;
      onStop(false);
    });
    this.#beating = setInterval(() => this.#report({ kind: 'beat' }), BEAT_INTERVAL_MS).unref();
    this.#report({ kind: 'beat' });
  }

  /** From now on answers with metrics, when the primary asks for them. */
  offerMetrics(measure: () => Promise<MetricsSnapshot>): void {
    this.#measure = measure;
  }

  /** Tells the metrics as they are now. */
  async tellMetrics(): Promise<void> {
    this.#report({ kind: 'metrics', snapshot: await this.#measure() });
  }

  /** Tells that requests are served. @param url - where */
  listening(url: string): void {
    this.#report({ kind: 'listening', url });
  }

  /** Tells that nobody reads the log that all processes write to. */
  unread(): void {
    this.#report({ kind: 'unread' });
  }

  /** Tells why this process ends. */
  failed(reason: string): void {
    this.#report({ kind: 'failed', reason });
  }

  /** Ends the connection, which would keep the process. What was told before still arrives. */
  leave(): void {
    clearInterval(this.#beating);
    if (this.#worker.isConnected()) this.#worker.process.disconnect();
  }

  #report(report: Report): void {
    // Without a callback an error would be thrown where nobody can catch it; a primary that is gone shows by 'disconnect'.
    if (this.#worker.isConnected()) this.#worker.process.send(seal(report), undefined, undefined, ignore);
  }
}

function ignore(): void {
  // See above.
}
