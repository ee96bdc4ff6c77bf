import type { Knex } from 'knex';
import { connectTo } from '../../support/database.js';
import { newPlan } from '../../support/keys/new-key.js';
import { eventually } from '../../support/eventually.js';
import { startPostgres, type TestPostgres } from '../../support/postgres.js';
import { PRODUCT_BOUNDS, startServer, type ServerProcess } from '../../support/program.js';
import { freePort } from '../../support/programs/free-port.js';
import { guideConfiguration, startBalancer, type Balancer } from '../../support/proxies/haproxy.js';
import { TcpProxy } from '../../support/proxies/tcp-proxy.js';
import { startRedis, type TestRedis } from '../../support/redis/redis.js';
import { addTitles, titleIds } from '../../support/titles.js';
import type { History } from './history.js';

/** A plan that no key uses up. */
export const UNLIMITED = 'unlimited';

/** The titles of the catalogue. */
export const TITLES = titleIds(300);

/** How often the output of servers is read, in milliseconds. */
const LOG_INTERVAL_MS = 200;

/** What a server has lost or has back. The log of requests is far longer. */
const CHANGE = /"msg":"(\w+) (lost|slow|back)/;

/** Two servers behind a balancer, on their own PostgreSQL and Redis, with networks in between that can be made bad. */
export class Deployment {
  readonly db: Knex;
  readonly servers = new Map<'one' | 'two', ServerProcess>();
  readonly #ports: { balancer: number; one: number; two: number };
  readonly #logs = setInterval(() => this.#readLogs(), LOG_INTERVAL_MS);
  #balancer: Balancer | undefined;

  private constructor(
    readonly postgres: TestPostgres,
    readonly redis: TestRedis,
    readonly toPostgres: TcpProxy,
    readonly toRedis: TcpProxy,
    private readonly history: History,
    [balancer, one, two]: readonly [number, number, number],
  ) {
    this.db = connectTo(postgres.url);
    this.#ports = { balancer, one, two };
  }

  /** @param program - HAProxy */
  static async start(history: History, program: string): Promise<Deployment> {
    const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    const [toPostgres, toRedis] = await Promise.all([TcpProxy.start(postgres.url), TcpProxy.start(redis.url)]);
    const ports = [await freePort(), await freePort(), await freePort()] as const;
    const deployment = new Deployment(postgres, redis, toPostgres, toRedis, history, ports);
    await addTitles(deployment.db, TITLES.length);
    await newPlan(deployment.db, UNLIMITED);
    await Promise.all([deployment.#startServer('one'), deployment.#startServer('two')]);
    deployment.#balancer = await startBalancer(program, await guideConfiguration(deployment.#ports));
    for (const name of ['one', 'two'] as const) await deployment.#untilBalanced(name);
    return deployment;
  }

  /** What clients call. */
  get url(): string {
    return `http://127.0.0.1:${this.#ports.balancer}`;
  }

  /** The settings of commands. Faults of the network do not reach them. */
  get environment(): Readonly<Record<string, string>> {
    return { DATABASE_URL: this.postgres.url, REDIS_URL: this.redis.url };
  }

  /** Ends the second server, and starts it again. @param signal - SIGTERM ends it as an upgrade does */
  async replaceServer(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.servers.get('two')?.stop(signal);
    this.#readLogs();
    await this.#startServer('two');
    await this.#untilBalanced('two');
  }

  async reloadBalancer(): Promise<void> {
    await this.#balancer?.reload();
  }

  /** Stops all parts, also if a fault has frozen them. */
  async stop(): Promise<void> {
    await this.#balancer?.stop();
    for (const server of this.servers.values()) await server.stop('SIGKILL');
    clearInterval(this.#logs);
    this.#readLogs();
    await this.db.destroy();
    await Promise.all([this.toPostgres.stop(), this.toRedis.stop()]);
    await Promise.all([this.postgres.stop('immediate'), this.redis.stop()]);
  }

  async #startServer(name: 'one' | 'two'): Promise<void> {
    const server = await startServer({
      ...PRODUCT_BOUNDS,
      DATABASE_URL: this.toPostgres.url,
      REDIS_URL: this.toRedis.url,
      PORT: String(this.#ports[name]),
      // The clients' addresses, since refusals are limited by address.
      TRUST_PROXY: '2',
      SITE: 'on',
      DRAIN_SECONDS: '5',
    });
    this.servers.set(name, server);
  }

  async #untilBalanced(name: 'one' | 'two'): Promise<void> {
    await eventually('the balancer uses the server', async () => {
      return (await this.#balancer?.servers())?.get(name)?.status === 'UP';
    });
  }

  /** Keeps only what the servers have lost and got back, so that memory suffices for hours. */
  #readLogs(): void {
    for (const { output, child } of this.servers.values()) {
      const end = output.stdout.lastIndexOf('\n') + 1;
      const lines = output.stdout.slice(0, end).split('\n');
      output.stdout = output.stdout.slice(end);
      for (const line of lines) {
        const [, part, state] = CHANGE.exec(line) ?? [];
        if (part === undefined) continue;
        const at = this.history.timeOf((JSON.parse(line) as { time: string }).time);
        const change = { pid: child.pid ?? 0, part, state: state === 'back' ? 'back' : 'lost' } as const;
        this.history.record({ kind: 'change', ...change, start: at, end: at });
      }
    }
  }
}
