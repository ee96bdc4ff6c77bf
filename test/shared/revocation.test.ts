import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { startSession } from '../../src/accounts/sessions.js';
import type { CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { eventually } from '../support/eventually.js';
import { Visitor } from '../support/http/visitor.js';
import { expireIn } from '../support/keys/expiry.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { startProgram } from '../support/program.js';
import { runCommand } from '../support/programs/command.js';
import { send, type Reply } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

/** Every operation. */
const PATHS = [
  '/api/v1/me',
  '/api/v1/stats',
  '/api/v1/titles/title-0001',
  `/api/v1/changes?since=${Math.floor(Date.now() / 1000) - 60}`,
];

/** Long enough to be cached by every server on a busy machine before it is over, in seconds. */
const LIFE_SECONDS = 8;

/** Servers whose announcements come at once, or after a second if PostgreSQL loses the notification, in milliseconds. */
const ANNOUNCED_WITHIN_MS = 2_500;

/** Keys that are revoked under load, and how many of them at the same time. */
const TRIALS = 20;
const LANES = 5;

interface Servers {
  /** Without Redis. */
  readonly plain: TestService;
  readonly one: TestService;
  readonly two: TestService;
  /** Reads a replica that lags. */
  readonly lagging: TestService;
}

interface Deployment {
  readonly servers: readonly TestService[];
  /** The settings of its commands. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A way in which a key ends. */
interface Ending {
  /** Whether it ends all keys of the developer. */
  readonly endsDeveloper?: true;
  /** Resolves when it is reported as done: then the key must be refused. */
  readonly end: (key: CreatedKey, on: Deployment) => Promise<unknown>;
}

describe('revocation', () => {
  const world = testWorld({ ownServer: true, redis: true });
  const agent = new Agent({ keepAlive: true, maxSockets: PATHS.length });
  let replica: TestReplica;
  let servers: Servers;
  let addresses = 0;

  before(async () => {
    await addTitles(world.db, 1);
    // The database announces nothing: the epoch alone must do.
    await announce('disable');
    replica = await startReplica(world.postgres);
    const start = (settings: Readonly<Record<string, string>> = {}): Promise<TestService> =>
      world.startService({ trustedProxies: 1, settings: { DATABASE_POOL_SIZE: '4', ...settings } });
    servers = {
      plain: await start({ REDIS_URL: '' }),
      one: await start(),
      two: await start(),
      lagging: await start({ DATABASE_READ_URL: replica.url }),
    };
  });

  after(() => agent.destroy());

  function deployment(...names: readonly (keyof typeof servers)[]): Deployment {
    const withoutRedis = names[0] === 'plain' && { REDIS_URL: '' };
    return { servers: names.map((name) => servers[name]), environment: { ...world.environment, ...withoutRedis } };
  }

  /** Makes the database announce changes of callers, or not. */
  async function announce(how: 'disable' | 'enable always'): Promise<void> {
    for (const table of ['api_keys', 'developers']) {
      await world.db.raw(`alter table ${table} ${how} trigger announce_changed`);
    }
  }

  async function command({ environment }: Deployment, ...args: readonly string[]): Promise<void> {
    const { code, stderr } = await runCommand(args, environment);
    assert.equal(code, 0, stderr);
  }

  /** On a busy machine, a request may get 503 because the database was too slow. It is then sent again. */
  async function sendUntilServed(url: string, path: string, headers: Record<string, string>): Promise<Reply> {
    const reply = await send(url, path, { headers, agent });
    return reply.status === 503 ? sendUntilServed(url, path, headers) : reply;
  }

  /** Uses a key on every server at once. @returns the different answers */
  async function answersTo(key: string, { servers: asked }: Deployment, paths: readonly string[]): Promise<string[]> {
    const replies = await Promise.all(
      asked.flatMap(({ url }) => {
        // Refusals are limited by address.
        const headers = { 'x-api-key': key, 'x-forwarded-for': `10.0.${++addresses >> 8}.${addresses & 255}` };
        return paths.map((path) => sendUntilServed(url, path, headers));
      }),
    );
    const code = (json: unknown): string => (json as { code?: string } | undefined)?.code ?? '';
    return [...new Set(replies.map(({ status, json }) => `${status} ${code(json)}`.trim()))];
  }

  async function assertAccepted(key: string, on: Deployment): Promise<void> {
    assert.deepEqual(await answersTo(key, on, ['/api/v1/me']), ['200']);
  }

  async function assertRefused(key: string, on: Deployment): Promise<void> {
    assert.deepEqual(await answersTo(key, on, PATHS), ['401 invalid_api_key']);
  }

  /** Uses keys twice, so that every process has them cached. */
  async function makeCached(keys: readonly CreatedKey[], on: Deployment): Promise<void> {
    for (const { key } of [...keys, ...keys]) await assertAccepted(key, on);
  }

  async function untilExpired({ prefix }: CreatedKey): Promise<void> {
    const isExpired = world.db.raw('expires_at <= clock_timestamp()');
    await eventually('the key expires', () => world.db('api_keys').where({ prefix }).andWhere(isExpired).first('id'));
  }

  async function revokeOnPage({ prefix, developerId }: CreatedKey, { url }: { readonly url: string }): Promise<void> {
    const visitor = new Visitor(url);
    const session = await startSession(world.db, { developerId, way: 'link', userAgent: '', replaced: undefined });
    visitor.cookies.set('catalog-session', session);
    assert.equal((await visitor.post(`/settings/keys/${prefix}/revoke`)).status, 303);
  }

  const ENDINGS: Readonly<Record<string, Ending>> = {
    'a key that is rolled without an overlap is refused at once': {
      end: ({ prefix }, on) => command(on, 'keys', 'roll', prefix, '--overlap', 'now'),
    },
    'a key that is revoked by command is refused at once': {
      end: ({ prefix }, on) => command(on, 'keys', 'revoke', prefix),
    },
    'a key that is revoked on a page is refused at once': {
      end: (key, { servers: [server = assert.fail()] }) => revokeOnPage(key, server),
    },
    'a key that its finder reports is refused at once': {
      async end({ key }, { servers: [{ url } = assert.fail()] }) {
        const headers = { 'content-type': 'application/json' };
        const report = { method: 'POST', headers, body: JSON.stringify({ key }) };
        assert.equal((await send(url, '/revoke-leaked-key', report)).status, 200);
      },
    },
    'a key of a suspended developer is refused at once': {
      endsDeveloper: true,
      end: ({ developerId }, on) => command(on, 'developers', 'suspend', String(developerId)),
    },
    'a key that is revoked in plain SQL is refused within moments': {
      async end({ key, prefix }, on) {
        await announce('enable always');
        await world.db('api_keys').where({ prefix }).update({ revoked_at: new Date() });
        await eventually('the key is refused', () => assertRefused(key, on).then(() => true), ANNOUNCED_WITHIN_MS);
        await announce('disable');
      },
    },
  };

  const DEPLOYMENTS: Readonly<
    Record<string, { readonly open: () => Deployment; readonly strike?: () => Promise<unknown> }>
  > = {
    'a server without Redis': { open: () => deployment('plain') },
    'every server of three, one of which reads a replica that lags': {
      open: () => deployment('one', 'two', 'lagging'),
    },
    'servers that have just lost Redis': {
      open: () => deployment('one', 'two', 'lagging'),
      strike: () => world.redis.kill(),
    },
  };

  for (const [by, { open, strike }] of Object.entries(DEPLOYMENTS)) {
    describe(`by ${by}`, () => {
      const keys = new Map<string, CreatedKey>();
      let on: Deployment;
      let kept: CreatedKey;

      before(async () => {
        on = open();
        kept = await world.newKey();
        for (const [title, { endsDeveloper }] of Object.entries(ENDINGS)) {
          keys.set(title, await world.newKey(endsDeveloper ? {} : { developerId: kept.developerId }));
        }
        await replica.caughtUp();
        await replica.pauseReplay();
        await makeCached([...keys.values(), kept], on);
        await strike?.();
      });

      after(() => replica.resumeReplay());

      for (const [title, { end }] of Object.entries(ENDINGS)) {
        it(`${title} by ${by}`, async () => {
          const key = keys.get(title) ?? assert.fail();
          await end(key, on);
          await assertRefused(key.key, on);
          await assertAccepted(kept.key, on);
        });
      }

      it(`the keys of a reinstated developer are accepted again by ${by}, except revoked ones`, async () => {
        const { developerId } = kept;
        const revoked = await world.newKey({ developerId });
        await command(on, 'developers', 'suspend', String(developerId));
        await revokeKey(world.db, revoked.prefix);
        await command(on, 'developers', 'reinstate', String(developerId));
        await assertRefused(revoked.key, on);
        await assertAccepted(kept.key, on);
      });

      if (strike === undefined) return;

      it('keys that ended while Redis was down are refused after it has returned', async () => {
        await world.redis.restart();
        await eventually('every server has Redis', () =>
          [servers.one, servers.two, servers.lagging].every(
            ({ changes }) => changes.findLast((change) => change.startsWith('redis')) === 'redis back',
          ),
        );
        for (const { key } of keys.values()) await assertRefused(key, on);
        await assertAccepted(kept.key, on);
      });
    });
  }

  describe('by the expiry of keys', () => {
    let on: Deployment;
    let keys: Readonly<Record<'putOff' | 'rolled' | 'movedForward' | 'expiring', CreatedKey>>;

    before(async () => {
      on = deployment('one', 'two', 'lagging', 'plain');
      const newKey = (): Promise<CreatedKey> => world.newKey();
      keys = { putOff: await newKey(), rolled: await newKey(), movedForward: await newKey(), expiring: await newKey() };
      const { putOff, rolled, movedForward, expiring } = keys;
      await command(on, 'keys', 'set-expiry', putOff.prefix, `${LIFE_SECONDS}s`);
      await command(on, 'keys', 'roll', rolled.prefix, '--overlap', `${LIFE_SECONDS}s`);
      await expireIn(world.db, expiring.prefix, LIFE_SECONDS * 1_000);
      await makeCached(Object.values(keys), on);
      await command(on, 'keys', 'set-expiry', movedForward.prefix, '1s');
      await command(on, 'keys', 'set-expiry', putOff.prefix, 'never');
      // The commands have ended the epoch.
      await makeCached([rolled, expiring], on);
      for (const key of [movedForward, rolled, expiring]) await untilExpired(key);
    });

    it('a key that expires is refused from that moment by every server', () => assertRefused(keys.expiring.key, on));

    it('a rolled key is refused from the end of its overlap by every server', () => assertRefused(keys.rolled.key, on));

    it('a key whose expiry is moved forward is refused from the new time by every server', () =>
      assertRefused(keys.movedForward.key, on));

    it('a key whose expiry is moved back is accepted after its former end by every server', () =>
      assertAccepted(keys.putOff.key, on));
  });

  it(`${TRIALS} keys that are revoked under load are refused at once by every server of three`, async () => {
    const on = deployment('one', 'two', 'lagging');
    let started = 0;
    const lane = async (): Promise<void> => {
      const { developerId } = await world.newKey();
      while (started < TRIALS) {
        const server = on.servers[++started % on.servers.length] ?? assert.fail();
        const key = await world.newKey({ developerId });
        await makeCached([key], on);
        await revokeOnPage(key, server);
        await assertRefused(key.key, on);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  });

  it('a key is refused by every server although the command that revoked it was killed before it could end the epoch', async () => {
    const on = deployment('one', 'two', 'lagging');
    const silent = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { key, prefix } = await world.newKey();
    await assertAccepted(key, on);
    await announce('enable always');
    const { port } = silent.address() as AddressInfo;
    const revoking = startProgram(['keys', 'revoke', prefix], {
      ...on.environment,
      REDIS_URL: `redis://127.0.0.1:${port}`,
    });
    await eventually('the change is committed', () =>
      world.db('api_keys').where({ prefix }).whereNotNull('revoked_at').first('id'),
    );
    revoking.child.kill('SIGKILL');
    assert.equal((await revoking.ended).stdout, '');
    await eventually('the key is refused', () => assertRefused(key, on).then(() => true), ANNOUNCED_WITHIN_MS);
    silent.close();
  });
});
