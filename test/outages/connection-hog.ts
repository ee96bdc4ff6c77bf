import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { eventually } from '../support/eventually.js';

/** Attempts to connect at the same time. */
const AT_ONCE = 8;

/** Between two attempts where there was no room, in milliseconds. */
const RETRY_MS = 5;

/** So often in a row the application must be found without a connection. */
const ROUNDS_WITHOUT = 5;

/** Takes all the connections that a PostgreSQL server has. */
export class ConnectionHog {
  readonly #held: pg.Client[] = [];
  #isTaking = false;
  #taking: Promise<unknown> = Promise.resolve();

  constructor(private readonly url: string) {}

  /** Takes what is free, and what one application has, until that gets none any more. */
  async takeAll(applicationName: string): Promise<void> {
    this.#isTaking = true;
    this.#taking = Promise.all(Array.from({ length: AT_ONCE }, () => this.#take()));
    const first = await eventually('a connection', () => this.#held[0]);
    let roundsWithout = 0;
    await eventually('all connections are taken', async () => {
      // Those that are just being made bear no name yet.
      const { rowCount } = await first.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where backend_type = 'client backend' and application_name in ('', $1)`,
        [applicationName],
      );
      roundsWithout = rowCount === 0 ? roundsWithout + 1 : 0;
      return roundsWithout === ROUNDS_WITHOUT;
    });
  }

  async letGo(): Promise<void> {
    this.#isTaking = false;
    await this.#taking;
    await Promise.all(this.#held.splice(0).map((client) => client.end()));
  }

  async #take(): Promise<void> {
    while (this.#isTaking) {
      const client = new pg.Client({
        connectionString: this.url,
        application_name: 'hog',
        connectionTimeoutMillis: 10_000,
      });
      client.on('error', () => undefined);
      try {
        await client.connect();
        this.#held.push(client);
      } catch {
        await delay(RETRY_MS);
      }
    }
  }
}
