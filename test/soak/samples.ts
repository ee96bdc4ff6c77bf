import { readdir, readFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { Redis } from 'ioredis';
import { MACHINE } from './checks/healing.js';
import type { Deployment } from './deployment.js';
import type { History } from './history.js';

/** Records the memory and descriptors of each process, and the connections to PostgreSQL and Redis, at intervals. */
export class Sampler {
  readonly #redis: Redis;
  readonly #timer: NodeJS.Timeout;
  #isBusy = false;

  constructor(
    private readonly deployment: Deployment,
    private readonly history: History,
    intervalMs: number,
  ) {
    this.#redis = new Redis(deployment.redis.url, { commandTimeout: 1_000, maxRetriesPerRequest: 1 });
    this.#redis.on('error', () => undefined);
    this.#timer = setInterval(() => void this.#take(), intervalMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#redis.disconnect();
  }

  async #take(): Promise<void> {
    // A database that is frozen answers late.
    if (this.#isBusy) return;
    this.#isBusy = true;
    const { deployment, history } = this;
    history.note({ kind: 'sample', subject: MACHINE, figures: { load: (loadavg()[0] ?? 0) / cpus().length } });
    for (const [subject, pid] of deployment.processes()) {
      try {
        const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
        const { length: descriptors } = await readdir(`/proc/${pid}/fd`);
        const figures = { 'memory, MiB': Number(kibibytes) / 1024, descriptors };
        history.note({ kind: 'sample', subject, figures });
      } catch {
        // It ended meanwhile, or the system has no /proc.
      }
    }
    const [toPostgres, toRedis] = await Promise.all([
      deployment
        .db('pg_stat_activity')
        .whereLike('application_name', 'catalog serve%')
        .count<{ count: string }[]>()
        .then(([row]) => row?.count)
        .catch(() => undefined),
      this.#redis
        .info('clients')
        .then((text) => /connected_clients:(\d+)/.exec(text)?.[1])
        .catch(() => undefined),
    ]);
    for (const [subject, count] of Object.entries({ PostgreSQL: toPostgres, Redis: toRedis })) {
      if (count !== undefined) history.note({ kind: 'sample', subject, figures: { connections: Number(count) } });
    }
    this.#isBusy = false;
  }
}
