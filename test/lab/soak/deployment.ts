import { readdir, readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { eventually } from '../../support/eventually.js';
import { PRODUCT_BOUNDS, type ServerProcess } from '../../support/program.js';
import { freePort } from '../../support/programs/free-port.js';
import { guideConfiguration, startBalancer, type Balancer } from '../../support/proxies/haproxy.js';
import { TcpProxy } from '../../support/proxies/tcp-proxy.js';
import { send } from '../../support/request.js';
import type { World } from '../../support/world.js';
import type { History } from './history.js';

const NAMES = ['one', 'two'] as const;
type Name = (typeof NAMES)[number];

const SAMPLE_INTERVAL_MS = 5_000;

/** Two servers behind a balancer, with networks to their PostgreSQL and Redis that can be made bad. */
export class Deployment {
  readonly servers = new Map<Name, ServerProcess>();
  #balancer: Balancer | undefined;

  private constructor(
    readonly world: World,
    readonly toPostgres: TcpProxy,
    readonly toRedis: TcpProxy,
    private readonly ports: Readonly<Record<Name | 'balancer', number>>,
  ) {}

  /** @param world - with servers of its own @param program - HAProxy */
  static async start(world: World, program: string): Promise<Deployment> {
    const [toPostgres, toRedis] = await Promise.all([TcpProxy.start(world.url), TcpProxy.start(world.redis.url)]);
    const ports = { balancer: await freePort(), one: await freePort(), two: await freePort() };
    const deployment = new Deployment(world, toPostgres, toRedis, ports);
    world.defer(() => Promise.all([toPostgres.stop(), toRedis.stop()]));
    await Promise.all(NAMES.map((name) => deployment.#startServer(name)));
    const balancer = await startBalancer(program, await guideConfiguration(ports));
    world.defer(() => balancer.stop());
    deployment.#balancer = balancer;
    for (const name of NAMES) await deployment.#untilBalanced(name);
    return deployment;
  }

  /** What clients call. */
  get url(): string {
    return `http://127.0.0.1:${this.ports.balancer}`;
  }

  /** Ends the second server, and starts it again. @param signal - SIGTERM ends it as an upgrade does */
  async replaceServer(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.servers.get('two')?.stop(signal);
    await this.#startServer('two');
    await this.#untilBalanced('two');
  }

  async reloadBalancer(): Promise<void> {
    await this.#balancer?.reload();
  }

  /** @returns whether all servers have all that they depend on within a time */
  async heals(withinMs: number): Promise<boolean> {
    const areReady = async (): Promise<boolean> => {
      const replies = await Promise.all(Array.from(this.servers.values(), ({ url }) => send(url, '/readyz')));
      return replies.every(({ json }) => (json as { status: unknown }).status === 'ready');
    };
    return eventually('every server is ready', areReady, withinMs).catch(() => false);
  }

  /** Records memory and descriptors of servers, and connections to the stores, at intervals. @returns what ends it */
  sample(history: History): () => void {
    const redis = new Redis(this.world.redis.url, { commandTimeout: 1_000, maxRetriesPerRequest: 1 });
    redis.on('error', () => undefined);
    const note = async (subject: string, measure: () => Promise<Record<string, number>>): Promise<void> => {
      // Not while a store is away, a process has just ended, or where the system has no /proc.
      const figures = await measure().catch(() => undefined);
      if (figures) history.record({ kind: 'sample', subject, figures });
    };
    const take = async (): Promise<void> => {
      for (const [name, { child, output }] of this.servers) {
        // Otherwise the logs of hours would fill the memory.
        output.stdout = '';
        await note(`server ${name} (${child.pid})`, async () => {
          const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${child.pid}/status`, 'utf8')) ?? [];
          const { length: descriptors } = await readdir(`/proc/${child.pid}/fd`);
          return { 'memory, MiB': Number(kibibytes) / 1024, descriptors };
        });
      }
      await note('PostgreSQL', async () => {
        const sessions = this.world.db('pg_stat_activity').whereLike('application_name', 'catalog serve%');
        return { connections: Number((await sessions.count<{ count: string }[]>())[0]?.count) };
      });
      await note('Redis', async () => ({
        connections: Number(/connected_clients:(\d+)/.exec(await redis.info('clients'))?.[1]),
      }));
    };
    let taking: Promise<void> | undefined;
    // A database that is frozen answers late.
    const timer = setInterval(() => void (taking ??= take().finally(() => (taking = undefined))), SAMPLE_INTERVAL_MS);
    return () => {
      clearInterval(timer);
      redis.disconnect();
    };
  }

  async #startServer(name: Name): Promise<void> {
    const server = await this.world.startServer({
      ...PRODUCT_BOUNDS,
      DATABASE_URL: this.toPostgres.url,
      REDIS_URL: this.toRedis.url,
      PORT: String(this.ports[name]),
      // The clients' addresses, since refusals are limited by address.
      TRUST_PROXY: '2',
      SITE: 'on',
      DRAIN_SECONDS: '5',
    });
    this.servers.set(name, server);
  }

  async #untilBalanced(name: Name): Promise<void> {
    await eventually('the balancer uses the server', async () => {
      return (await this.#balancer?.servers())?.get(name)?.status === 'UP';
    });
  }
}
