import { Redis, SentinelConnector, type RedisOptions, type SentinelConnectionOptions } from 'ioredis';
import { backoff } from '../async/backoff.js';
import { recurring, type Recurring } from '../async/recurring.js';
import { shareWhilePending } from '../async/share-while-pending.js';
import { withTimeout } from '../async/with-timeout.js';
import { OperatorError } from '../../errors.js';

/** Where Redis is. */
export interface RedisAddress {
  /** `redis://` or `rediss://`. May contain a password and is never printed. */
  readonly url: string;
  /** The Sentinels that name the master, if any. The host of the URL is then the master's name. */
  readonly sentinels?: readonly { readonly host: string; readonly port: number }[] | undefined;
  /** The password of the Sentinels themselves, if they have one. */
  readonly sentinelPassword?: string | undefined;
}

/** @returns the name of a key. All names share a hash tag, so a script may use any of them where cluster mode is on. */
export function redisKey(...parts: readonly (string | number)[]): string {
  return ['{catalog}', ...parts].join(':');
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

/** Called when Redis is lost, with the reason, and when it is back. */
export type RedisListener = (state: 'lost' | 'up', error?: unknown) => void;

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

const PROBE_KEY = redisKey('probe');
const PROBE = `return redis.call('set', KEYS[1], '', 'px', ARGV[1])`;

/** The lifetime of the key that the probe writes, in milliseconds. */
const PROBE_LIFETIME_MS = 1_000;

/**
 * By default ioredis queues commands while it is disconnected and sends failed ones again, so a dead or frozen Redis
 * would hang a request for ever. With these options commands fail at once and are sent only once.
 */
const OPTIONS = {
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  retryStrategy: (failures) => backoff(failures, RETRY),
  // The address may lead to the new master by now.
  reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  connectionName: 'catalog',
  // It needs INFO, which some Redis do not have. The probe finds a Redis that still loads its data.
  enableReadyCheck: false,
} as const satisfies RedisOptions;

/**
 * The connection to Redis as an optional dependency. Every command ends in bounded time. After a failure the link sends
 * no command until a probe succeeds, so an outage costs the first requests a short wait and the others none.
 *
 * Not ioredis' `Cluster`: it follows a failover silently, and a promoted replica may hold an older epoch.
 */
export class RedisLink {
  /** For defining scripts. Commands go through {@link run}. */
  readonly client: Redis;
  /** Bound on one command, in milliseconds. */
  readonly timeoutMs: number;
  readonly #onChange: RedisListener;
  #state: 'connecting' | 'lost' | 'up' = 'connecting';
  /** The first error of the current connection, or of the attempts since the last one. */
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
    this.client = new Redis(address.url, {
      ...OPTIONS,
      connectTimeout: Math.max(CONNECT_TIMEOUT_MS, timeoutMs),
      socketTimeout: Math.max(SILENCE_TIMEOUT_MS, 2 * timeoutMs),
      ...sentinelOptions(address, onSentinelLost),
    });
    // Without a listener, ioredis would write errors to the console.
    for (const event of ['error', 'sentinelError']) {
      this.client.on(event, (error: unknown) => (this.#reason ??= error));
    }
    this.client.on('connect', () => (this.#reason = undefined));
    this.client.on('ready', () => void this.#probe());
    for (const event of ['close', 'end']) {
      this.client.on(event, () => this.#change('lost', this.#reason ?? new Error('the connection was closed')));
    }
    this.#retrying = recurring(async () => {
      if (this.isUp) {
        // Keeps Redis, and proxies before it, from closing a connection that idles. Any reply will do.
        this.client.ping().catch(() => undefined);
        return;
      }
      // ioredis gives up when no Sentinel names a master, or when a failover is announced while it looks for one.
      if (this.client.status === 'end') this.client.connect().catch(() => undefined);
      else await this.#probe();
    }, RETRY.longestMs);
  }

  /** Whether the link sends commands. */
  get isUp(): boolean {
    return this.#state === 'up';
  }

  /**
   * Waits until Redis has answered or failed for the first time.
   *
   * @throws OperatorError for a node of a Redis Cluster, which would not recover
   */
  async settled(): Promise<void> {
    try {
      await withTimeout(this.#settled, CONNECT_TIMEOUT_MS + this.timeoutMs);
    } catch (error) {
      this.#change('lost', this.#reason ?? error);
    }
    if (this.#refusal) throw this.#refusal;
  }

  /** @throws RedisUnavailable when Redis is lost, fails or takes too long; the command may still take effect */
  async run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    if (!this.isUp) throw new RedisUnavailable('Redis is lost');
    try {
      return await withTimeout(command(this.client), this.timeoutMs);
    } catch (error) {
      this.#change('lost', error);
      throw new RedisUnavailable('Redis failed', { cause: error });
    }
  }

  close(): void {
    void this.#retrying.stop();
    // This end of the connection is no loss.
    this.#state = 'lost';
    this.client.disconnect();
  }

  /**
   * Tries a Redis that is not up with a script that writes: not every user may run scripts, and a full Redis or a
   * replica answers reads but refuses writes.
   */
  readonly #probe = shareWhilePending(async () => {
    if (this.isUp || !this.#isConnected()) return;
    if (this.#reason !== undefined) {
      // The connection could not be set up, such as for want of that database. ioredis would use database 0.
      this.#change('lost', this.#reason);
      this.client.disconnect(true);
      return;
    }
    try {
      await withTimeout(this.#tryOut(), this.timeoutMs);
      if (this.#isConnected()) this.#change('up');
    } catch (error) {
      this.#refusal = error instanceof OperatorError ? error : undefined;
      this.#change('lost', error);
    }
  });

  async #tryOut(): Promise<void> {
    // Not every user may send it, and not every proxy knows it.
    const properties = await this.client.call('HELLO').catch(() => undefined);
    if (String(properties).includes('mode,cluster')) {
      throw new OperatorError('The Redis named by REDIS_URL is a node of a Redis Cluster, which is not supported.', {
        advice: 'Use a Redis with one primary endpoint, or Sentinels.',
      });
    }
    await this.client.eval(PROBE, 1, PROBE_KEY, PROBE_LIFETIME_MS);
  }

  #isConnected(): boolean {
    return this.client.status === 'ready';
  }

  #change(state: 'lost' | 'up', error?: unknown): void {
    const before = this.#state;
    if (state === before) return;
    this.#state = state;
    this.#settle();
    if (before !== 'connecting' || state === 'lost') this.#onChange(state, error);
  }
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
