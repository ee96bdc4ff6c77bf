import { Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress } from '../../config/redis-address.js';
import { withTimeout } from '../async/with-timeout.js';
import { DISCONNECT_TIMEOUT_MS } from './discovery.js';
import { primaryOf, type Primary } from './primary.js';

/**
 * The name of a key of this service. All names have one hash tag, and so one slot. In a Redis Cluster, a script may
 * only use the keys of one slot.
 */
export function redisKey(...parts: readonly (string | number)[]): string {
  return ['{catalog}', ...parts].join(':');
}

/** Redis is away, slow, or refused a command. The command had no effect, or its effect is unknown. */
export class RedisUnavailable extends Error {
  override readonly name = 'RedisUnavailable';
}

/** @returns the error of a caller that has less time than Redis takes. It says nothing about Redis. */
export function noTimeLeft(): RedisUnavailable {
  return new RedisUnavailable('there is no time left for Redis');
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

/** Called when Redis is lost, with the reason, and when it answers again. */
export type RedisListener = (state: 'lost' | 'up', error?: unknown) => void;

/** The default bound on one command, in milliseconds. After it, a request still has time to ask the database. */
const COMMAND_TIMEOUT_MS = 250;

/** Bound on a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 1_000;

/** When nothing comes back on a connection for this long, the link replaces the connection. In milliseconds. */
const SILENCE_TIMEOUT_MS = 2_000;

/** How often the link tries a lost Redis again, in milliseconds. */
const PROBE_INTERVAL_MS = 500;

const PROBE_KEY = redisKey('probe');
const PROBE = `return redis.call('set', KEYS[1], '', 'px', ARGV[1])`;

/** The lifetime of the key that the probe writes, in milliseconds. */
const PROBE_LIFETIME_MS = 1_000;

/**
 * By default ioredis lets commands wait, and sends them again. A dead or frozen Redis would hang a request for ever.
 * With these options commands fail at once, and no failed command is sent again.
 */
const OPTIONS = {
  lazyConnect: true,
  connectTimeout: CONNECT_TIMEOUT_MS,
  socketTimeout: SILENCE_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  retryStrategy: () => PROBE_INTERVAL_MS,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  connectionName: 'catalog',
} as const satisfies RedisOptions;

/**
 * The connection to Redis as an optional dependency. Every command ends in bounded time. After a failure the link sends
 * no command until a probe succeeds. So an outage costs a short wait for the first requests, and none for all others.
 */
export class RedisLink {
  readonly #primary: Primary;
  readonly #client: Redis;
  readonly #onChange: RedisListener;
  /** Bound on one command, in milliseconds. */
  readonly timeoutMs: number;
  #isUp = false;
  #hasChanged = false;
  /** Whether the link is replacing the connection. */
  #isClosing = false;
  /** Why the connection failed, if it reported a reason. */
  #reason: unknown;
  #probing: Promise<void> | undefined;
  readonly #timer: NodeJS.Timeout;

  /**
   * Begins to connect.
   *
   * @param address - may contain a password, and is never printed
   * @param timeoutMs - bound on one command, in milliseconds
   */
  constructor(address: RedisAddress, onChange: RedisListener, timeoutMs = COMMAND_TIMEOUT_MS) {
    this.#onChange = onChange;
    this.timeoutMs = timeoutMs;
    this.#primary = primaryOf(address, PROBE_KEY, (reason) => {
      this.#markLost(reason);
      this.#connectAnew();
    });
    this.#client = new Redis({ ...OPTIONS, ...this.#primary.options });
    // Without a listener ioredis would write the error to the console. The loss is reported once, with this reason.
    this.#client.on('error', (error: unknown) => (this.#reason = error));
    this.#client.on('connect', () => (this.#reason = undefined));
    this.#client.on('ready', () => {
      // The connection could not be set up: there may be no database of that number. ioredis would use another one.
      if (this.#reason === undefined) void this.#probe();
      else {
        this.#markLost(this.#takeReason());
        this.#connectAnew();
      }
    });
    this.#client.on('close', () => {
      this.#isClosing = false;
      this.#markLost(this.#takeReason());
    });
    this.#client.on('end', () => this.#markLost(this.#takeReason()));
    this.#timer = setInterval(() => this.#tryAgain(), PROBE_INTERVAL_MS);
    this.#connect();
  }

  /** The client on which scripts are defined. Commands go through {@link run}. */
  get client(): Redis {
    return this.#client;
  }

  /** Whether the link sends commands. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** Waits for the first answer or the first failure of Redis. */
  async settled(): Promise<void> {
    const deadline = performance.now() + CONNECT_TIMEOUT_MS + this.timeoutMs;
    while (!this.#hasChanged && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    if (!this.#hasChanged) this.#markLost(this.#reason ?? new Error('no answer'));
  }

  /** @throws RedisUnavailable when Redis is lost, fails or takes too long; the command may still take effect */
  async run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    if (!this.#isUp) throw new RedisUnavailable('Redis is lost');
    try {
      return await withTimeout(command(this.#client), this.timeoutMs);
    } catch (error) {
      this.#fail(error);
      throw new RedisUnavailable('Redis failed', { cause: error });
    }
  }

  close(): void {
    clearInterval(this.#timer);
    // This end of the connection is no loss.
    this.#isUp = false;
    this.#hasChanged = true;
    this.#primary.close();
    this.#client.disconnect();
  }

  #connect(): void {
    // The listeners report the failure.
    this.#client.connect().catch(() => undefined);
  }

  #tryAgain(): void {
    // When ioredis has not found a server, it does not look again by itself.
    if (this.#client.status === 'end') this.#connect();
    else void this.#probe();
  }

  /**
   * The probe is a script that writes. Most commands of the service are scripts, which not every user may run. A full
   * Redis or a replica answers reads and refuses writes.
   */
  async #probe(): Promise<void> {
    if (this.#isUp || this.#isClosing || this.#client.status !== 'ready') return;
    this.#probing ??= withTimeout(this.#client.eval(PROBE, 1, PROBE_KEY, PROBE_LIFETIME_MS), this.timeoutMs)
      .then(
        () => this.#markUp(),
        (error: unknown) => this.#fail(error),
      )
      .finally(() => (this.#probing = undefined));
    await this.#probing;
  }

  #markUp(): void {
    if (this.#isClosing || this.#client.status !== 'ready') return;
    const isFirst = !this.#hasChanged;
    this.#isUp = true;
    this.#hasChanged = true;
    if (!isFirst) this.#onChange('up');
  }

  /** Decides after a failed command. */
  #fail(error: unknown): void {
    this.#markLost(this.#explain(error));
    // Behind Sentinels or a Cluster, any failure may mean that another server takes the writes now. With one address,
    // only a server's own refusal of writes means that: the address may lead to a new server.
    if (this.#primary.changes || (error instanceof Error && error.message.startsWith('READONLY'))) this.#connectAnew();
  }

  #explain(error: unknown): unknown {
    if (this.#primary.changes || !(error instanceof Error) || !error.message.startsWith('MOVED')) return error;
    return new Error('it is a node of a Redis Cluster, which REDIS_URL names with redis+cluster://', { cause: error });
  }

  #connectAnew(): void {
    // Once for each connection, however many of its commands fail. In other states there is no connection to replace.
    if (this.#isClosing || !['connect', 'ready'].includes(this.#client.status)) return;
    this.#isClosing = true;
    this.#client.disconnect(true);
  }

  #takeReason(): unknown {
    const reason = this.#reason ?? new Error('the connection was closed');
    this.#reason = undefined;
    return reason;
  }

  #markLost(error: unknown): void {
    if (this.#hasChanged && !this.#isUp) return;
    this.#isUp = false;
    this.#hasChanged = true;
    this.#onChange('lost', error);
  }
}
