import { readdir, readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import type { Deployment } from './deployment.js';
import type { History } from './history.js';

const INTERVAL_MS = 5_000;

/** Records the memory and descriptors of each server, and the connections to PostgreSQL and Redis, at intervals. */
export class Sampler {
  readonly #redis: Redis;
  readonly #timer = setInterval(() => void this.#take(), INTERVAL_MS);
  #isBusy = false;

  constructor(
    private readonly deployment: Deployment,
    private readonly history: History,
  ) {
    this.#redis = new Redis(deployment.redis.url, { commandTimeout: 1_000, maxRetriesPerRequest: 1 });
    this.#redis.on('error', () => undefined);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#redis.disconnect();
  }

  async #take(): Promise<void> {
    // A database that is frozen answers late.
    if (this.#isBusy) return;
    this.#isBusy = true;
    const { deployment } = this;
    for (const [name, { child }] of deployment.servers) {
      // Without a sample when it ended meanwhile, or the system has no /proc.
      await this.#note(`server ${name} (${child.pid})`, async () => {
        const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${child.pid}/status`, 'utf8')) ?? [];
        const { length: descriptors } = await readdir(`/proc/${child.pid}/fd`);
        return { 'memory, MiB': Number(kibibytes) / 1024, descriptors };
      });
    }
    await this.#note('PostgreSQL', async () => {
      const sessions = deployment.db('pg_stat_activity').whereLike('application_name', 'catalog serve%');
      return { connections: Number((await sessions.count<{ count: string }[]>())[0]?.count) };
    });
    await this.#note('Redis', async () => ({
      connections: Number(/connected_clients:(\d+)/.exec(await this.#redis.info('clients'))?.[1]),
    }));
    this.#isBusy = false;
  }

  async #note(subject: string, measure: () => Promise<Record<string, number>>): Promise<void> {
    const figures = await measure().catch(() => undefined);
    if (figures) this.history.note({ kind: 'sample', subject, figures });
  }
}
