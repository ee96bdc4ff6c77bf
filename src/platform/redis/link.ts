import { Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress } from '../../config/redis-address.js';
import { inTime } from '../process/in-time.js';
import { DISCONNECT_TIMEOUT_MS } from './discovery.js';
import { primaryOf, type Primary } from './primary.js';

/**
 * The name of a key of this service. All carry one hash tag, so that one script may touch any of them in a Redis Cluster
 * too, where the keys of a script must lie in one slot.
 */
export function redisKey(...parts: readonly (string | number)[]): string {
  return ['{catalog}', ...parts].join(':');
}

/** Redis is away, slow, or refused a command: what was asked of it did not happen, or nobody knows whether it did. */
export class RedisUnavailable extends Error {
  override readonly name = 'RedisUnavailable';
}

const NO_TIME_LEFT = 'there is no time left for Redis';

/** A reply has not come in time. */
class Late extends Error {
  override readonly name = 'Late';

  constructor(timeoutMs: number) {
    super(`no reply within ${Math.round(timeoutMs)} ms`);
  }
}

/** Turns "Redis is unavailable" into undefined, for what can be had without it. */
export async function ifAvailable<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof RedisUnavailable) return undefined;
    throw error;
  }
}

/** Told when Redis is given up, with the reason, and when it answers again. */
export type RedisListener = (state: 'lost' | 'back', error?: unknown) => void;

/**
 * Bound on one command, in milliseconds, unless told otherwise: small against the bound on a request, which may have to ask
 * elsewhere then.
 */
const COMMAND_TIMEOUT_MS = 250;

/** Bound on a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 1_000;

/** A connection on which nothing comes back for this long is given up for a new one, in milliseconds. */
const SILENCE_TIMEOUT_MS = 2_000;

/** How often a lost Redis is tried again, in milliseconds. */
const PROBE_INTERVAL_MS = 500;

const PROBE_KEY = redisKey('probe');
const PROBE = `return redis.call('set', KEYS[1], '', 'px', ARGV[1])`;

/** What the probe writes lives no longer than this, in milliseconds. */
const PROBE_LIFETIME_MS = 1_000;

/**
 * With the defaults a dead or frozen Redis would hang a request for good: commands wait for a connection and are sent
 * again on the next one. Here they fail at once, and what fails is never sent a second time.
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
 * Redis, for what the service can do without: every command ends in bounded time, and after a failure none is sent until
 * a probe succeeds, so that an outage costs the requests that met it a short wait and all others none.
 */
export class RedisLink {
  readonly #primary: Primary;
  readonly #client: Redis;
  readonly #onChange: RedisListener;
  /** Bound on one command, in milliseconds. */
  readonly timeoutMs: number;
  #isUp = false;
  #hasChanged = false;
  /** Whether the connection is being given up for a new one. */
  #isClosing = false;
  /** Why the connection failed, as far as it has said. */
  #reason: unknown;
  #probing: Promise<void> | undefined;
  readonly #timer: NodeJS.Timeout;

  /**
   * Begins to connect.
   *
   * @param address - may hold a password, and is never printed
   * @param timeoutMs - bound on one command, in milliseconds
   */
  constructor(address: RedisAddress, onChange: RedisListener, timeoutMs = COMMAND_TIMEOUT_MS) {
    this.#onChange = onChange;
    this.timeoutMs = timeoutMs;
    this.#primary = primaryOf(address, PROBE_KEY, (reason) => {
      this.#lose(reason);
      this.#connectAnew();
    });
    this.#client = new Redis({ ...OPTIONS, ...this.#primary.options });
    // Without a listener it would be written to the console. It is told once, as the reason below.
    this.#client.on('error', (error: unknown) => (this.#reason = error));
    this.#client.on('connect', () => (this.#reason = undefined));
    this.#client.on('ready', () => {
      // Something went wrong on the way here, such as a database that is not there: ioredis would use another.
      if (this.#reason === undefined) void this.#probe();
      else {
        this.#lose(this.#takeReason());
        this.#connectAnew();
      }
    });
    this.#client.on('close', () => {
      this.#isClosing = false;
      this.#lose(this.#takeReason());
    });
    this.#client.on('end', () => {
      this.#lose(this.#takeReason());
    });
    this.#timer = setInterval(() => {
      this.#tryAgain();
    }, PROBE_INTERVAL_MS);
    this.#connect();
  }

  /** For scripts to be defined on. Commands go through {@link run}. */
  get client(): Redis {
    return this.#client;
  }

  /** Whether commands are sent at all. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** Waits until Redis answers or has failed to for the first time. */
  async settled(): Promise<void> {
    const deadline = performance.now() + CONNECT_TIMEOUT_MS + this.timeoutMs;
    while (!this.#hasChanged && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    if (!this.#hasChanged) this.#lose(this.#reason ?? new Error('no answer'));
  }

  /**
   * Runs a command.
   *
   * @param until - a bound beside the command's own, on the clock of `performance.now()`: for several commands together
   * @throws RedisUnavailable when Redis is lost, fails, or takes too long; the command may take effect even so
   */
  async run<T>(command: (client: Redis) => Promise<T>, until = Infinity): Promise<T> {
    if (!this.#isUp) throw new RedisUnavailable('Redis is lost');
    const timeoutMs = Math.min(this.timeoutMs, until - performance.now());
    if (timeoutMs <= 0) throw new RedisUnavailable(NO_TIME_LEFT);
    try {
      return await inTime(command(this.#client), timeoutMs, () => new Late(timeoutMs));
    } catch (error) {
      // That whoever asks has less time than a command may take says nothing about Redis.
      if (error instanceof Late && timeoutMs < this.timeoutMs) throw new RedisUnavailable(NO_TIME_LEFT);
      this.#fail(error);
      throw new RedisUnavailable('Redis failed', { cause: error });
    }
  }

  /** Ends the connection. */
  close(): void {
    clearInterval(this.#timer);
    // The end of the connection is no loss.
    this.#isUp = false;
    this.#hasChanged = true;
    this.#primary.close();
    this.#client.disconnect();
  }

  #connect(): void {
    this.#client.connect().catch(ignore);
  }

  #tryAgain(): void {
    // Where the way to the server was not found, ioredis does not look for it again.
    if (this.#client.status === 'end') this.#connect();
    else void this.#probe();
  }

  /**
   * A script, as most that is asked of Redis, which not every user may run; and one that writes, since a Redis that is full
   * or a replica answers reads.
   */
  async #probe(): Promise<void> {
    if (this.#isUp || this.#isClosing || this.#client.status !== 'ready') return;
    this.#probing ??= inTime(this.#client.eval(PROBE, 1, PROBE_KEY, PROBE_LIFETIME_MS), this.timeoutMs)
      .then(
        () => this.#find(),
        (error: unknown) => this.#fail(error),
      )
      .finally(() => (this.#probing = undefined));
    await this.#probing;
  }

  #find(): void {
    if (this.#isClosing || this.#client.status !== 'ready') return;
    const isFirst = !this.#hasChanged;
    this.#isUp = true;
    this.#hasChanged = true;
    if (!isFirst) this.#onChange('back');
  }

  /** After a command that failed. */
  #fail(error: unknown): void {
    this.#lose(this.#explain(error));
    // Where the server changes, nothing that failed is trusted to be the one that takes writes; elsewhere one that says
    // itself that it is not: the address may lead to the new one.
    if (this.#primary.changes || (error instanceof Error && error.message.startsWith('READONLY'))) this.#connectAnew();
  }

  #explain(error: unknown): unknown {
    if (this.#primary.changes || !(error instanceof Error) || !error.message.startsWith('MOVED')) return error;
    return new Error('it is a node of a Redis Cluster, which REDIS_URL names with redis+cluster://', { cause: error });
  }

  #connectAnew(): void {
    // Once for each connection, however many commands have failed on it; in other states there is none to give up.
    if (this.#isClosing || !['connect', 'ready'].includes(this.#client.status)) return;
    this.#isClosing = true;
    this.#client.disconnect(true);
  }

  #takeReason(): unknown {
    const reason = this.#reason ?? new Error('the connection was closed');
    this.#reason = undefined;
    return reason;
  }

  #lose(error: unknown): void {
    if (this.#hasChanged && !this.#isUp) return;
    this.#isUp = false;
    this.#hasChanged = true;
    this.#onChange('lost', error);
  }
}

function ignore(): void {
  // The listeners hear of it.
}
