import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { CreatedKey } from '../../src/keys/keys.js';
import { PRODUCT_BOUNDS, startServer, type ServerProcess } from '../support/program.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';

/** Keys of each row, each of a developer of its own and cached on both servers. */
const KEYS = 1_000;

/** Keys that are revoked at the same time. */
const AT_ONCE = 25;

const agent = new Agent({ keepAlive: true, maxSockets: 100 });

/** Prints how many of many keys some server accepts after a client was told that they are revoked. */
describe('keys that were reported as revoked', () => {
  const world = testWorld({ redis: true });
  let network: TcpProxy;
  /** The first reaches Redis by the network. */
  let servers: readonly ServerProcess[];
  let addresses = 0;

  before(async () => {
    network = await TcpProxy.start(world.redis.url);
    world.defer(() => network.stop());
    const environment = { ...world.environment, ...PRODUCT_BOUNDS, TRUST_PROXY: '1', SITE: 'off' };
    servers = [await startServer({ ...environment, REDIS_URL: network.url }), await startServer(environment)];
  });

  after(async () => {
    agent.destroy();
    await Promise.all(servers.map((server) => server.stop()));
  });

  const address = (): string => `10.${(addresses += 1) >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`;

  async function use(key: CreatedKey, { url }: ServerProcess): Promise<number> {
    const headers = { 'x-api-key': key.key, 'x-forwarded-for': address() };
    return (await send(url, '/api/v1/me', { headers, agent })).status;
  }

  /** @returns whether the client was told that the key is revoked */
  async function report({ key }: CreatedKey, { url }: ServerProcess): Promise<boolean> {
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': address() };
    const body = JSON.stringify({ key });
    const { status, text } = await send(url, '/revoke-leaked-key', { method: 'POST', headers, body, agent });
    return status === 200 && text === '{"revoked":true}';
  }

  const first = (): ServerProcess => servers[0] ?? assert.fail();
  const second = (): ServerProcess => servers[1] ?? assert.fail();

  /** The first answer of several reporters. */
  const firstOf = (...reports: readonly Promise<boolean>[]): Promise<boolean> =>
    Promise.any(reports.map(async (each) => (await each) || Promise.reject(new Error('refused')))).catch(() => false);

  interface Row {
    /** What disturbs the servers while the keys are revoked. @returns what ends that */
    readonly disturb?: () => Promise<() => Promise<unknown>>;
    /** Resolves once a client was told that a key is revoked, or was not. */
    readonly revoke: (key: CreatedKey) => Promise<boolean>;
  }

  /** Again and again, until it is ended. */
  const repeatedly = (act: () => Promise<unknown>) => async (): Promise<() => Promise<unknown>> => {
    const ending = new AbortController();
    const acting = (async () => {
      while (!ending.signal.aborted) await act();
    })();
    return () => {
      ending.abort();
      return acting;
    };
  };

  const stalled = (ms: number, everyMs: number) =>
    repeatedly(async () => {
      world.redis.pause();
      await delay(ms);
      world.redis.resume();
      await delay(everyMs - ms);
    });

  const ROWS: Readonly<Record<string, Row>> = {
    'two reporters at once, to two servers': { revoke: (key) => firstOf(report(key, first()), report(key, second())) },
    'a server whose connections to Redis were just cut': {
      async revoke(key) {
        network.cut();
        await delay(3);
        return report(key, first());
      },
    },
    'Redis stalls for 180 ms each 0.7 s': { disturb: stalled(180, 700), revoke: (key) => report(key, first()) },
    'Redis stalls for 230 ms each 0.8 s': { disturb: stalled(230, 800), revoke: (key) => report(key, first()) },
    'Redis is away for the revoking server': {
      disturb: repeatedly(async () => {
        network.cut();
        await delay(5);
      }),
      revoke: (key) => report(key, first()),
    },
  };

  for (const [what, { disturb, revoke }] of Object.entries(ROWS)) {
    it(what, async () => {
      const keys: CreatedKey[] = [];
      for (let i = 0; i < KEYS; i += AT_ONCE) {
        keys.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => world.newKey()))));
      }
      const inBatches = async (act: (key: CreatedKey) => Promise<unknown>, atOnce = AT_ONCE): Promise<void> => {
        for (let i = 0; i < keys.length; i += atOnce) await Promise.all(keys.slice(i, i + atOnce).map(act));
      };
      await inBatches(async (key) => {
        for (let round = 0; round < 4; round += 1) {
          for (const server of servers) assert.equal(await use(key, server), 200);
        }
      });
      const stop = await disturb?.();
      const waits: number[] = [];
      let [told, accepted] = [0, 0];
      await inBatches(
        async (key) => {
          const start = performance.now();
          if (!(await revoke(key))) return;
          waits.push(performance.now() - start);
          told += 1;
          const statuses = await Promise.all(servers.map((server) => use(key, server)));
          if (statuses.includes(200)) accepted += 1;
        },
        // Without Redis each takes seconds.
        disturb ? 4 * AT_ONCE : AT_ONCE,
      );
      await stop?.();
      waits.sort((a, b) => a - b);
      const ms = (part: number): string => `${Math.round(waits[Math.floor(part * (waits.length - 1))] ?? 0)} ms`;
      process.stdout.write(`      ${told} told, ${accepted} accepted; ${ms(0.5)} median, ${ms(1)} longest\n`);
      assert.equal(accepted, 0);
      assert.ok(told > 0);
    });
  }
});
