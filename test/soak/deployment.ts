import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { connectTo } from '../support/database.js';
import { newPlan } from '../support/deployments/deployment.js';
import { eventually } from '../support/eventually.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { PRODUCT_BOUNDS, startServer, type ServerProcess } from '../support/program.js';
import { freePort } from '../support/programs/free-port.js';
import { findProgram, HAPROXY } from '../support/programs/system-program.js';
import { guideConfiguration, startBalancer, type Balancer } from '../support/proxies/haproxy.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { startRedis, type TestRedis } from '../support/redis/redis.js';
import { addTitles, titleIds } from '../support/titles.js';
import type { History } from './history.js';
import { ServerLog } from './server-log.js';

/** A plan that no key uses up, and one that is used up every minute. */
export const UNLIMITED = 'unlimited';
export const LIMITED = 'limited';
const PER_MINUTE = { [UNLIMITED]: 2_000_000_000, [LIMITED]: 30 };

/** Titles of the catalogue in the beginning. */
export const TITLES = titleIds(300);

/** A server, and what it logs. */
export interface DeployedServer {
  readonly name: 'one' | 'two';
  readonly process: ServerProcess;
  readonly log: ServerLog;
}

/** Servers on a PostgreSQL and a Redis of their own, with networks in between that can be made bad. */
export class Deployment {
  readonly db: Knex;
  readonly toPostgres: TcpProxy;
  readonly toRedis: TcpProxy;
  readonly servers = new Map<string, DeployedServer>();
  balancer: Balancer | undefined;
  readonly #ports = { balancer: 0, one: 0, two: 0 };

  private constructor(
    readonly postgres: TestPostgres,
    readonly redis: TestRedis,
    networks: readonly [TcpProxy, TcpProxy],
    private readonly history: History,
  ) {
    this.db = connectTo(postgres.url);
    [this.toPostgres, this.toRedis] = networks;
  }

  /**
   * Starts a server; with a balancer, a second one as well.
   *
   * @param isBalanced - whether there is a balancer in front, if the machine has one
   */
  static async start(history: History, isBalanced: boolean): Promise<Deployment> {
    const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    const networks = await Promise.all([TcpProxy.start(postgres.url), TcpProxy.start(redis.url)]);
    const deployment = new Deployment(postgres, redis, networks, history);
    await addTitles(deployment.db, TITLES.length);
    for (const [plan, perMinute] of Object.entries(PER_MINUTE)) {
      await newPlan(deployment.db, plan, perMinute, PER_MINUTE[UNLIMITED]);
    }
    history.note({ kind: 'plan', plan: LIMITED, perMinute: PER_MINUTE[LIMITED] });
    const program = isBalanced ? findProgram(HAPROXY) : undefined;
    await deployment.#startAll(program);
    return deployment;
  }

  /** What clients call. */
  get url(): string {
    const { balancer, one } = this.#ports;
    return `http://127.0.0.1:${this.balancer === undefined ? one : balancer}`;
  }

  /** The settings of commands. Faults of the network do not reach them. */
  get environment(): Readonly<Record<string, string>> {
    return { DATABASE_URL: this.postgres.url, REDIS_URL: this.redis.url };
  }

  /** The processes of all servers, each by a name of its own. */
  processes(): ReadonlyMap<string, number> {
    return new Map(
      [...this.servers.values()].map(({ name, process: { child } }) => [
        `server ${name} (${child.pid})`,
        child.pid ?? 0,
      ]),
    );
  }

  async startServer(name: 'one' | 'two'): Promise<void> {
    const server = await startServer({
      ...PRODUCT_BOUNDS,
      DATABASE_URL: this.toPostgres.url,
      REDIS_URL: this.toRedis.url,
      PORT: String(this.#ports[name]),
      // The clients' addresses, since refusals are limited by address.
      TRUST_PROXY: this.#ports.balancer === 0 ? '1' : '2',
      SITE: 'on',
      DRAIN_SECONDS: '5',
    });
    this.servers.set(name, { name, process: server, log: new ServerLog(server, this.history) });
  }

  /** The last server, which faults are done to. Without a balancer, it is the only one. */
  get victim(): DeployedServer {
    return [...this.servers.values()].at(-1) ?? assert.fail('no server runs');
  }

  /**
   * Ends a server, and starts it again.
   *
   * @param signal - SIGTERM ends it as an upgrade does
   */
  async replaceServer({ name, process: old, log }: DeployedServer, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await old.stop(signal);
    log.stop();
    await this.startServer(name);
    await eventually('the balancer uses the new server', async () => {
      return this.balancer === undefined || (await this.balancer.servers()).get(name)?.status === 'UP';
    });
  }

  /** Stops all parts, also if a fault has frozen them. */
  async stop(): Promise<void> {
    await this.balancer?.stop();
    for (const { process: server, log } of this.servers.values()) {
      await server.stop('SIGKILL');
      log.stop();
    }
    await this.db.destroy();
    await Promise.all([this.toPostgres.stop(), this.toRedis.stop()]);
    await Promise.all([this.postgres.stop('immediate'), this.redis.stop()]);
  }

  async #startAll(balancerProgram: string | undefined): Promise<void> {
    this.#ports.one = await freePort();
    if (balancerProgram !== undefined) {
      this.#ports.two = await freePort();
      this.#ports.balancer = await freePort();
    }
    await this.startServer('one');
    if (balancerProgram === undefined) return;
    await this.startServer('two');
    this.balancer = await startBalancer(balancerProgram, await guideConfiguration(this.#ports));
    await eventually('the balancer uses both servers', async () =>
      [...((await this.balancer?.servers()) ?? [])].every(([, { status }]) => status === 'UP'),
    );
  }
}
