import type { Knex } from 'knex';
import type { CreatedKey } from '../../src/keys/keys.js';
import { openTestDatabase, connectTo } from './database.js';
import { newDeveloper, newKey, type NewKey } from './keys/new-key.js';
import { startPostgres, type TestPostgres } from './postgres.js';
import { startServer, type ServerProcess } from './program.js';
import { startRedis, type TestRedis } from './redis/redis.js';
import { startService, type TestService, type TestServiceOptions } from './service.js';

/** What a suite needs around it. */
export interface WorldOptions {
  /** The suite's own PostgreSQL server, which it may stop, kill or freeze. By default a database of the shared one. */
  readonly ownServer?: boolean;
  /** A Redis server of the suite's own. */
  readonly redis?: boolean;
  /** A service in this process on that database, and on that Redis if there is one: `true`, or how it differs. */
  readonly service?: TestServiceOptions | true;
  /** A new world for each test. By default all tests of the suite share one. */
  readonly each?: boolean;
}

/** A migrated database and what runs on it. Its members throw before the suite's first hook has opened it. */
export interface World {
  readonly db: Knex;
  /** The address of the database. */
  readonly url: string;
  /** With `ownServer`. */
  readonly postgres: TestPostgres;
  /** With `redis`. */
  readonly redis: TestRedis;
  /** With `service`. */
  readonly service: TestService;
  /** The settings of a program that belongs to this world. */
  readonly environment: Readonly<Record<string, string>>;
  /** Creates a developer. @returns its id */
  newDeveloper(projectName?: string): Promise<number>;
  /** Creates a key: by default of a developer of its own, on a plan that no test uses up. */
  newKey(options?: NewKey): Promise<CreatedKey>;
  /** Starts one more service in this process. */
  startService(options?: TestServiceOptions): Promise<TestService>;
  /** Starts a server process with these settings besides {@link environment}. */
  startServer(settings?: Readonly<Record<string, string>>, flags?: readonly string[]): Promise<ServerProcess>;
  /** Registers what must be closed before all that was opened until now. */
  defer(close: () => unknown): void;
}

/**
 * Opens what a suite needs and closes it afterwards, by mocha's hooks. Call it first thing in `describe`:
 *
 * ```ts
 * describe('plans', () => {
 *   const world = testWorld({ redis: true });
 *   before(() => addTitles(world.db, 3));
 * ```
 *
 * Everything is closed in the reverse order of its opening. Use `world.defer` in place of an `after` hook for what
 * still needs the world: mocha runs `after` hooks in the order of their registration.
 */
export function testWorld({ ownServer = false, redis = false, service, each = false }: WorldOptions = {}): World {
  let closers: (() => unknown)[] = [];
  let parts: Partial<Pick<World, 'db' | 'url' | 'postgres' | 'redis' | 'service'>> = {};

  (each ? beforeEach : before)(async () => {
    await Promise.all([openDatabase(), redis && openRedis()]);
    if (service) Object.assign(parts, { service: await world.startService(service === true ? {} : service) });
  });

  (each ? afterEach : after)(async () => {
    try {
      for (let close = closers.pop(); close; close = closers.pop()) await close();
    } finally {
      [closers, parts] = [[], {}];
    }
  });

  async function openDatabase(): Promise<void> {
    if (ownServer) {
      const postgres = await startPostgres();
      world.defer(() => postgres.stop('immediate'));
      const db = connectTo(postgres.url);
      world.defer(() => db.destroy());
      Object.assign(parts, { db, url: postgres.url, postgres });
    } else {
      const database = await openTestDatabase();
      world.defer(() => database.close());
      Object.assign(parts, { db: database.db, url: database.url });
    }
  }

  async function openRedis(): Promise<void> {
    const server = await startRedis();
    world.defer(() => server.stop());
    Object.assign(parts, { redis: server });
  }

  function part<Name extends keyof typeof parts>(name: Name): NonNullable<(typeof parts)[Name]> {
    const value = parts[name];
    if (value === undefined) throw new Error(`the test world has no ${name}, or is not open yet`);
    return value;
  }

  const world: World = {
    get db() {
      return part('db');
    },
    get url() {
      return part('url');
    },
    get postgres() {
      return part('postgres');
    },
    get redis() {
      return part('redis');
    },
    get service() {
      return part('service');
    },
    get environment() {
      return { DATABASE_URL: world.url, ...(parts.redis && { REDIS_URL: parts.redis.url }), TRUST_PROXY: '1' };
    },
    newDeveloper: (projectName) => newDeveloper(world.db, projectName),
    newKey: (options) => newKey(world.db, options),
    async startService(options = {}) {
      const redisUrl = parts.redis && { redisUrl: parts.redis.url };
      const started = await startService({ databaseUrl: world.url, ...redisUrl, ...options });
      world.defer(() => started.stop());
      return started;
    },
    async startServer(settings = {}, flags = []) {
      const server = await startServer({ ...world.environment, ...settings }, flags);
      world.defer(() => server.stop());
      return server;
    },
    defer(close) {
      closers.push(close);
    },
  };
  return world;
}
