import calculateSlot from 'cluster-key-slot';
import {
  Cluster,
  Redis,
  SentinelConnector,
  type ClusterOptions,
  type RedisOptions,
  type SentinelConnectionOptions,
} from 'ioredis';
import { backoff } from '../async/backoff.js';
import { recurring, type Recurring } from '../async/recurring.js';
import { shareWhilePending } from '../async/share-while-pending.js';
import { withTimeout } from '../async/with-timeout.js';
import { OperatorError } from '../../errors.js';
import { RedisServer } from './server.js';

/** Where Redis is. */
export interface RedisAddress {
  /** `redis://` or `rediss://`. May contain a password and is never printed. */
  readonly url: string;
  /** Nodes of a cluster, of which one must be reachable, and its users and certificates. Without it, Redis is none. */
  readonly cluster?: { readonly nodes: HostAndPort[]; readonly login: ClusterLogin } | undefined;
  /** The Sentinels that name the master, if any. The host of the URL is then the master's name. */
  readonly sentinels?: readonly HostAndPort[] | undefined;
  /** The password of the Sentinels themselves, if they have one. */
  readonly sentinelPassword?: string | undefined;
}

type ClusterLogin = Pick<RedisOptions, 'username' | 'password' | 'tls'>;

interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** Redis is away, slow, or refused a command. The command had no effect, or its effect is unknown. */
export class RedisUnavailable extends Error {
  override readonly name = 'RedisUnavailable';
}

/** Turns "Redis is unavailable" into undefined, for callers that have another way. */
export async function ifAvailable<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof RedisUnavailable) return undefined;
    throw error;
  }
}

/**
 * Called when Redis is lost, with the reason, and when it is back. For a cluster, also when more shards are lost, or less.
 *
 * @param lostShards - the first slot of each shard that is lost; empty if all of Redis is lost, or nothing
 */
export type RedisListener = (state: 'lost' | 'up', error?: unknown, lostShards?: readonly number[]) => void;

export interface RedisLinkOptions {
  /** Bound on one command, in milliseconds. */
  readonly timeoutMs?: number;
  /** Called when a Sentinel cannot be reached, although Redis can. */
  readonly onSentinelLost?: (error: unknown) => void;
}

/** The default bound on one command, in milliseconds. After it, a request still has time to ask the database. */
const COMMAND_TIMEOUT_MS = 250;

/** The least bound on a connection, also to a Sentinel, in milliseconds. */
const CONNECT_TIMEOUT_MS = 1_000;

/** ioredis replaces a connection that is silent for so many milliseconds after a command, or twice its bound. */
const SILENCE_TIMEOUT_MS = 2_000;

/** How long a server may take to close its side of a connection, in milliseconds. */
const DISCONNECT_TIMEOUT_MS = 100;

/** The waits between attempts to use a lost Redis. */
const RETRY = { firstMs: 100, longestMs: 500 } as const;

/** A link that idles notices every other master of a cluster after so many turns at most. */
const TURNS_BETWEEN_READS = 4;

const SLOTS = 16_384;

/** What a node of a cluster replies about a key that it does not have, or will not have for long. */
const REDIRECTION = /\b(?:MOVED|ASK|TRYAGAIN) /;

/** What a node of a cluster, or a proxy before several servers, replies to a script with keys of two slots. */
const SHARDED = /\b(?:CROSSSLOT|CLUSTERDOWN) |\bsame slot\b/;

const PROBE = `return redis.call('set', KEYS[1], '', 'px', ARGV[1])`;

/** The lifetime of the key that the probe writes, in milliseconds. */
const PROBE_LIFETIME_MS = 1_000;

/**
 * By default ioredis queues commands while it is disconnected and sends failed ones again, so a dead or frozen Redis
 * would hang a request for ever. With these options commands fail at once and are sent only once.
 */
const OPTIONS = {
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  // The address may lead to the new master by now.
  reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  connectionName: 'catalog',
  // It needs INFO, which some Redis do not have. The probe finds a Redis that still loads its data.
  enableReadyCheck: false,
} as const satisfies RedisOptions;

const CLUSTER_OPTIONS = {
  clusterRetryStrategy: (failures) => backoff(failures, RETRY),
  enableOfflineQueue: false,
  enableReadyCheck: false,
  // ioredis would follow a failover silently, and a promoted replica may hold older data.
  maxRedirections: 0,
  // Keeps host names, for which certificates are made.
  dnsLookup: (host, callback) => callback(null, host),
} as const satisfies ClusterOptions;

/**
 * The connection to Redis as an optional dependency. Every command ends in bounded time. After a failure the link sends
 * no command until a probe succeeds, so an outage costs the first requests a short wait and the others none. In a
 * cluster, this holds for each shard on its own.
 */
export class RedisLink {
  /** For defining scripts. Commands go through {@link run}. */
  readonly client: Redis | Cluster;
  /** Bound on one command, in milliseconds. */
  readonly timeoutMs: number;
  #onChange: RedisListener;
  readonly #cluster: Cluster | undefined;
  /** The server that has each slot. Without a cluster, all keys are in one slot. */
  readonly #owners: (RedisServer | undefined)[] = [undefined];
  /** The session of each slot. */
  readonly #sessions = new Uint32Array(SLOTS);
  /** The state that was reported last; undefined until Redis has answered or failed. */
  #reported: string | undefined;
  /** The last error of a node of a cluster. */
  #reason: unknown;
  /** Why this Redis will never do. */
  #refusal: OperatorError | undefined;
  readonly #retrying: Recurring;
  #settle = (): void => undefined;
  readonly #settled = new Promise<void>((resolve) => (this.#settle = resolve));

  /**
   * Begins to connect.
   *
   * @param onChange - not called when Redis is up from the beginning
   */
  constructor(
    address: RedisAddress,
    onChange: RedisListener,
    { timeoutMs = COMMAND_TIMEOUT_MS, onSentinelLost = () => undefined }: RedisLinkOptions = {},
  ) {
    this.#onChange = onChange;
    this.timeoutMs = timeoutMs;
    const connectTimeout = Math.max(CONNECT_TIMEOUT_MS, timeoutMs);
    const options = { ...OPTIONS, connectTimeout, socketTimeout: Math.max(SILENCE_TIMEOUT_MS, 2 * timeoutMs) };
    if (address.cluster === undefined) {
      const retryStrategy = (failures: number): number => backoff(failures, RETRY);
      const own = { ...options, retryStrategy, enableOfflineQueue: false };
      const client = new Redis(address.url, { ...own, ...sentinelOptions(address, onSentinelLost) });
      this.client = client;
      this.#owners[0] = this.#serverOf(client);
    } else {
      const redisOptions = { ...options, ...address.cluster.login };
      const cluster = new Cluster(address.cluster.nodes, { ...CLUSTER_OPTIONS, redisOptions });
      this.client = this.#cluster = cluster;
      cluster.on('refresh', () => this.#noteOwners(cluster));
      cluster.on('node error', (error: unknown) => (this.#reason = error));
      cluster.on('error', () => undefined); // Each is a "node error" as well.
    }
    let turn = 0;
    this.#retrying = recurring(async () => {
      turn += 1;
      if (this.#cluster !== undefined) {
        // ioredis can do this too, but may not stop when the link is closed.
        if (!this.isUp || turn % TURNS_BETWEEN_READS === 0) await this.#readOwners();
        // ioredis gives up when no Sentinel names a master, or when a failover is announced while it looks for one.
      } else if (this.client.status === 'end') this.client.connect().catch(() => undefined);
      await Promise.all(this.shards.map(({ server }) => server?.tend() ?? Promise.resolve()));
    }, RETRY.longestMs);
  }

  /** The shards of a cluster. Any other Redis is one shard. */
  get shards() {
    return [...new Set(this.#owners)].map((server) => {
      return { firstSlot: this.#owners.indexOf(server), state: server?.state ?? 'connecting', server };
    });
  }

  /** Whether the link sends commands for every key. */
  get isUp(): boolean {
    return this.shards.every(({ state }) => state === 'up');
  }

  /**
   * Waits until Redis has answered or failed for the first time.
   *
   * @throws OperatorError for a node of a cluster without its setting, which would not recover
   */
  async settled(): Promise<void> {
    try {
      await withTimeout(this.#settled, CONNECT_TIMEOUT_MS + this.timeoutMs);
    } catch (error) {
      this.#report(this.#owners[0]?.reason ?? this.#reason ?? error, true);
    }
    if (this.#refusal) throw this.#refusal;
  }

  /** @returns the slot of a key. A script may only use keys of one slot. */
  slotOf(key: string): number {
    return this.#cluster === undefined ? 0 : calculateSlot(key);
  }

  /**
   * Runs a command where a key is; once more if the key has moved to another server.
   *
   * @param command - gets the session: a number that is another one before a reply can come from another server, or over
   *   another connection, where older data may be
   * @throws RedisUnavailable when Redis is lost, fails or takes too long; the command may still take effect
   */
  async run<T>(key: string, command: (client: Redis | Cluster, session: number) => Promise<T>): Promise<T> {
    const slot = this.slotOf(key);
    for (let isRepeated = false; ; isRepeated = true) {
      const server = this.#owners[slot];
      const session = this.#sessions[slot] ?? 0;
      if (server?.state !== 'up') throw new RedisUnavailable('Redis is lost');
      try {
        const reply = await withTimeout(command(this.client, session), this.timeoutMs);
        if (session !== this.#sessions[slot]) throw new Error('the reply is of an earlier session');
        return reply;
      } catch (error) {
        const isRedirected = REDIRECTION.test(String(error));
        if (!isRedirected && session === this.#sessions[slot]) server.lose(error);
        if (!isRedirected || isRepeated) throw new RedisUnavailable('Redis failed', { cause: error });
      }
      await this.#readOwners();
    }
  }

  close(): void {
    void this.#retrying.stop();
    // This end of the connection is no loss.
    this.#onChange = () => undefined;
    this.client.disconnect();
  }

  #serverOf(client: Redis): RedisServer {
    const server: RedisServer = new RedisServer(
      client,
      () => this.#tryOut(server),
      this.timeoutMs,
      (error) => {
        this.#refusal = error instanceof OperatorError ? error : undefined;
        for (const [slot, owner] of this.#owners.entries()) if (owner === server) this.#endSession(slot);
        this.#report(error);
      },
    );
    return server;
  }

  /**
   * Tries a Redis that is not up with a script that writes: not every user may run scripts, and a full Redis or a
   * replica answers reads but refuses writes. Outside a cluster, one script charges several developers, so it must accept
   * keys of any slots.
   *
   * @throws OperatorError for a node of a cluster, or a proxy before one, without its setting
   */
  async #tryOut(server: RedisServer): Promise<void> {
    const probeKey = (i: number): string => `catalog:probe:${i}`;
    if (this.#cluster === undefined) {
      await server.client.eval(PROBE, 2, probeKey(0), probeKey(1), PROBE_LIFETIME_MS).catch(refuseSharded);
      return;
    }
    let i = 0;
    while (i < 10 * SLOTS && this.#owners[this.slotOf(probeKey(i))] !== server) i += 1;
    await server.client.eval(PROBE, 1, probeKey(i), PROBE_LIFETIME_MS);
  }

  /** Asks a node which server has each slot. */
  readonly #readOwners = shareWhilePending(async () => {
    const reading = new Promise<void>((resolve) => this.#cluster?.refreshSlotsCache(() => resolve()));
    await withTimeout(reading, this.timeoutMs).catch(() => undefined);
  });

  #noteOwners(cluster: Cluster): void {
    const clients = new Map(cluster.nodes().map((node) => [`${node.options.host}:${node.options.port}`, node]));
    const servers = new Map(this.shards.map(({ server }) => [server?.client, server]));
    for (let slot = 0; slot < SLOTS; slot += 1) {
      const client = clients.get(String(cluster.slots[slot]?.[0]));
      if (client !== undefined && !servers.has(client)) servers.set(client, this.#serverOf(client));
      const owner = client && servers.get(client);
      if (owner === this.#owners[slot]) continue;
      this.#owners[slot] = owner;
      this.#endSession(slot);
    }
    this.#report(new Error('the server that has these slots is not connected yet'));
  }

  #endSession(slot: number): void {
    this.#sessions[slot] = (this.#sessions[slot] ?? 0) + 1;
  }

  /** @param isOverdue - whether a server that has neither answered nor failed counts as lost */
  #report(error: unknown, isOverdue = false): void {
    const { shards } = this;
    const isPending = this.#reported === undefined && shards.some(({ state }) => state === 'connecting');
    if (isPending && !isOverdue) return;
    const lost = shards.filter(({ state }) => state !== 'up').map(({ firstSlot }) => firstSlot);
    const before = this.#reported ?? '';
    this.#reported = lost.join();
    this.#settle();
    if (this.#reported === before) return;
    this.#onChange(lost.length > 0 ? 'lost' : 'up', error, lost.length < shards.length ? lost : []);
  }
}

function refuseSharded(error: unknown): never {
  if (!SHARDED.test(String(error))) throw error;
  throw new OperatorError('The Redis named by REDIS_URL is sharded, such as a node of a Redis Cluster.', {
    advice:
      'For a cluster, set REDIS_URL to redis+cluster://host:port,host:port, or rediss+cluster for TLS, with some of its nodes. A sharding proxy is not supported.',
    cause: error,
  });
}

function sentinelOptions({ url, sentinels, sentinelPassword }: RedisAddress, onSentinelLost: (error: unknown) => void) {
  if (sentinels === undefined) return {};
  const { hostname, protocol } = new URL(url);
  return {
    sentinels: [...sentinels],
    name: hostname,
    // Accepts a master alone.
    enableReadyCheck: true,
    // Leaves a master that was replaced although it still answers.
    failoverDetector: true,
    Connector: listeningConnector(onSentinelLost),
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    // The link tries again itself.
    sentinelRetryStrategy: () => null,
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(protocol === 'rediss:' && { sentinelTLS: {}, tls: {}, enableTLSForSentinelMode: true }),
  } satisfies RedisOptions;
}

/**
 * Makes ioredis' connector with listeners on the clients that wait for announcements of a failover. Without them,
 * ioredis prints each of their errors on the console.
 *
 * @param onLost - called once for each Sentinel and connection to the master
 */
function listeningConnector(onLost: (error: unknown) => void): NonNullable<RedisOptions['Connector']> {
  return class extends SentinelConnector {
    constructor(options: unknown) {
      super(options as SentinelConnectionOptions);
      const own = this as unknown as { connectToSentinel: (endpoint: unknown, options?: object) => Redis };
      const connect = own.connectToSentinel.bind(this);
      own.connectToSentinel = (endpoint, options) => {
        const client = connect(endpoint, options);
        // Clients that look for the master get no options, and their errors are reported.
        if (options !== undefined) client.once('error', onLost).on('error', () => undefined);
        return client;
      };
    }
  };
}
