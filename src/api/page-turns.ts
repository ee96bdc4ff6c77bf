import type { Knex } from 'knex';
import { setImmediate } from 'node:timers/promises';
import { Semaphore } from '../platform/async/semaphore.js';
import { poolOf } from '../platform/postgres/database.js';
import { DatabaseTimeout } from '../platform/postgres/errors.js';

// `make bench PARTS=catchup` measures these.
const READS_AT_ONCE = 2;
const ANSWERS_PER_TURN = 4;

interface Request<Page> {
  /** On the clock of `performance.now()`. */
  readonly queuedAt: number;
  readonly resolve: (page: Page) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads few pages at a time and sends them one by one. Mirrors that catch up, or wait for a slow database, then leave
 * most connections and most of the event loop to other requests.
 *
 * Requests that wait for the same page share it. It is read after all of them have arrived, so each of them sees
 * everything that was committed before.
 */
export class PageTurns<Page> {
  readonly #reading: Semaphore;
  readonly #sending = new Semaphore(1);
  readonly #mostWaitMs: number;
  readonly #waiting = new Map<string, Request<Page>[]>();

  /** @param db - whose connections the pages are read on: at most half of them */
  constructor(db: Knex) {
    const { acquireTimeoutMs, state } = poolOf(db);
    this.#reading = new Semaphore(Math.min(READS_AT_ONCE, Math.ceil(state.max / 2)));
    // The other half is for the reading.
    this.#mostWaitMs = acquireTimeoutMs / 2;
  }

  /**
   * @param id - the same for requests that can share a page
   * @param read - reads the page
   * @throws DatabaseTimeout if it was not its turn in time; the errors of `read`
   */
  load(id: string, read: () => Promise<Page>): Promise<Page> {
    return new Promise((resolve, reject) => {
      const request = { queuedAt: performance.now(), resolve, reject };
      const waiting = this.#waiting.get(id);
      if (waiting !== undefined) {
        waiting.push(request);
        return;
      }
      const requests = [request];
      this.#waiting.set(id, requests);
      void this.#serve(id, requests, read);
    });
  }

  async #serve(id: string, requests: readonly Request<Page>[], read: () => Promise<Page>): Promise<void> {
    // By then, every request of this turn of the event loop has arrived.
    await setImmediate();
    await this.#reading.acquire();
    this.#waiting.delete(id);
    try {
      if (performance.now() - (requests.at(-1)?.queuedAt ?? 0) > this.#mostWaitMs) {
        throw new DatabaseTimeout('too many pages of the feed were requested to read this one in time');
      }
      const page = await read();
      await setImmediate();
      await this.#send(requests, page);
    } catch (error) {
      for (const { reject } of requests) reject(error);
    } finally {
      this.#reading.release();
    }
  }

  /** Each answer is rendered, and written, as soon as its promise is resolved. */
  async #send(requests: readonly Request<Page>[], page: Page): Promise<void> {
    await this.#sending.acquire();
    for (const [index, { resolve }] of requests.entries()) {
      if (index > 0 && index % ANSWERS_PER_TURN === 0) await setImmediate();
      resolve(page);
    }
    // Two turns, in which other requests send a command to Redis and receive its reply.
    await setImmediate();
    await setImmediate();
    this.#sending.release();
  }
}
