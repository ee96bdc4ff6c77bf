import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { CreatedKey } from '../../src/keys/keys.js';
import { median } from '../bench/measure.js';
import { newAddress } from '../support/http/new-address.js';
import { PRODUCT_BOUNDS, type ServerProcess } from '../support/program.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';

/** Keys of each row, each of a developer of its own and cached on both servers. */
const KEYS = 1_000;

/** Keys that are revoked at the same time; more where Redis is away, since each takes seconds then. */
const AT_ONCE = 25;
const AT_ONCE_WITHOUT_REDIS = 100;

const agent = new Agent({ keepAlive: true, maxSockets: 100 });

/** Prints how many of many keys some server accepts after a client was told that they are revoked. */
describe('keys that were reported as revoked', () => {
  const world = testWorld({ redis: true });
  let network: TcpProxy;
  /** Reaches Redis by the network. */
  let one: ServerProcess;
  let two: ServerProcess;

  before(async () => {
    network = await TcpProxy.start(world.redis.url);
    world.defer(() => network.stop());
    const settings = { ...PRODUCT_BOUNDS, SITE: 'off' };
    one = await world.startServer({ ...settings, REDIS_URL: network.url });
    two = await world.startServer(settings);
    world.defer(() => agent.destroy());
  });

  async function use({ key }: CreatedKey, { url }: ServerProcess): Promise<number> {
    const headers = { 'x-api-key': key, 'x-forwarded-for': newAddress() };
    return (await send(url, '/api/v1/me', { headers, agent })).status;
  }

  /** @returns whether the client was told that the key is revoked */
  async function report({ key }: CreatedKey, { url }: ServerProcess): Promise<boolean> {
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': newAddress() };
    const body = JSON.stringify({ key });
    const { status, text } = await send(url, '/revoke-leaked-key', { method: 'POST', headers, body, agent });
    return status === 200 && text === '{"revoked":true}';
  }

  /** The first that was told, of a client of each server. */
  const reportToBoth = (key: CreatedKey): Promise<boolean> =>
    Promise.any(
      [one, two].map(async (each) => (await report(key, each)) || Promise.reject(new Error('refused'))),
    ).catch(() => false);

  async function stall(ms: number, everyMs: number): Promise<void> {
    world.redis.pause();
    await delay(ms);
    world.redis.resume();
    await delay(everyMs - ms);
  }

  interface Row {
    /** What disturbs the servers, again and again, while the keys are revoked. */
    readonly disturb?: () => Promise<unknown>;
    /** Resolves once a client was told that a key is revoked, or was not. */
    readonly revoke: (key: CreatedKey) => Promise<boolean>;
  }

  const cut = async (ms: number): Promise<void> => {
    network.cut();
    await delay(ms);
  };

  const ROWS: Readonly<Record<string, Row>> = {
    'two reporters at once, to two servers': { revoke: reportToBoth },
    'a server whose connections to Redis were just cut': { revoke: (key) => cut(3).then(() => report(key, one)) },
    'Redis stalls for 180 ms each 0.7 s': { disturb: () => stall(180, 700), revoke: (key) => report(key, one) },
    'Redis stalls for 230 ms each 0.8 s': { disturb: () => stall(230, 800), revoke: (key) => report(key, one) },
    'Redis is away for the revoking server': { disturb: () => cut(5), revoke: (key) => report(key, one) },
  };

  for (const [what, { disturb, revoke }] of Object.entries(ROWS)) {
    it(what, async () => {
      const waits: number[] = [];
      let accepted = 0;
      const keys: CreatedKey[] = [];
      const inBatches = async (atOnce: number, act: (index: number) => Promise<unknown>): Promise<void> => {
        for (let first = 0; first < KEYS; first += atOnce) {
          await Promise.all(Array.from({ length: atOnce }, (_, i) => act(first + i)));
        }
      };
      await inBatches(AT_ONCE, async (index) => {
        const key = (keys[index] = await world.newKey());
        for (const server of [one, two, one, two, one, two]) assert.equal(await use(key, server), 200);
      });
      const isOver = new AbortController();
      const disturbing = (async () => {
        while (disturb && !isOver.signal.aborted) await disturb();
      })();
      await inBatches(disturb ? AT_ONCE_WITHOUT_REDIS : AT_ONCE, async (index) => {
        const key = keys[index] ?? assert.fail();
        const start = performance.now();
        if (!(await revoke(key))) return;
        waits.push(performance.now() - start);
        const statuses = await Promise.all([one, two].map((server) => use(key, server)));
        if (statuses.includes(200)) accepted += 1;
      });
      isOver.abort();
      await disturbing;
      const [usual, longest] = [median(waits), Math.max(...waits)].map((ms) => `${Math.round(ms)} ms`);
      process.stdout.write(`      ${waits.length} told, ${accepted} accepted; ${usual} median, ${longest} longest\n`);
      assert.equal(accepted, 0);
      assert.ok(waits.length > 0);
    });
  }
});
