import { Redis } from 'ioredis';
import type { OperatorError } from '../../errors.js';
import { recurring, type Recurring } from '../async/recurring.js';
import { withTimeout } from '../async/with-timeout.js';
import { ClusterTopology } from './cluster.js';
import { sentinelOptions } from './sentinel.js';
import { singleTopology } from './single.js';
import { clientOptions, CONNECT_TIMEOUT_MS, RETRY, type RedisAddress, type Topology } from './topology.js';

export type { RedisAddress } from './topology.js';

/** Redis is away, slow, or refused a command. The command had no effect, or its effect is unknown. */
export class RedisUnavailable extends Error {
  override readonly name = 'RedisUnavailable';
}

/** Turns "Redis is unavailable" into undefined, as where there is no Redis, for callers that have another way. */
export async function ifAvailable<T>(result: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof RedisUnavailable) return undefined;
    throw error;
  }
}

/**
 * Called when Redis is lost, with the reason, when it is back, and whenever the set of lost shards changes.
 *
 * @param lostShards - the names of the shards that are lost; empty if all of Redis is lost, or nothing
 */
export type RedisListener = (state: 'lost' | 'up', error?: unknown, lostShards?: readonly string[]) => void;

export interface RedisLinkOptions {
  /** Bound on one command, in milliseconds. */
  readonly timeoutMs?: number;
  /** Called when a Sentinel cannot be reached, although Redis can. */
  readonly onSentinelLost?: (error: unknown) => void;
}

/** The default bound on one command, in milliseconds. After it, a request still has time to ask the database. */
const COMMAND_TIMEOUT_MS = 250;

/** The reply of a cluster's node about a key that has moved, or is moving. */
const REDIRECTION = /\b(?:MOVED|ASK|TRYAGAIN) /;

/**
 * The connection to Redis as an optional dependency. Every command ends in bounded time. After a failure the link sends
 * no command until a probe succeeds, so an outage costs the first requests a short wait and the others none. In a
 * cluster, this holds for each shard on its own.
 */
export class RedisLink {
  readonly #timeoutMs: number;
  readonly #topology: Topology;
  readonly #tending: Recurring;
  #onChange: RedisListener;
  /** The lost shards that were reported last; undefined until Redis has answered or failed. */
  #reported: string | undefined;
  /** Why this Redis cannot be used at all, whatever happens. */
  #refusal: OperatorError | undefined;
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
    this.#timeoutMs = timeoutMs;
    const report = (): void => this.#report();
    if (address.cluster !== undefined) this.#topology = new ClusterTopology(address.cluster, timeoutMs, report);
    else {
      const options = { ...clientOptions(timeoutMs), ...sentinelOptions(address, onSentinelLost) };
      this.#topology = singleTopology(new Redis(address.url, options), timeoutMs, report);
    }
    this.#tending = recurring(async () => {
      await Promise.all([this.#topology.refresh(), ...this.shards.map((shard) => shard.tend())]);
    }, RETRY.longestMs);
  }

  /** The shards of a cluster, by the ids of their masters. Any other Redis is one shard. */
  get shards() {
    return this.#topology.shards;
  }

  /** Whether the link sends commands for every key. */
  get isUp(): boolean {
    return this.shards.every(({ state }) => state === 'up');
  }

  /**
   * Waits until Redis has answered or failed for the first time.
   *
   * @throws OperatorError for a node of a cluster without its setting, or the reverse, which would not recover
   */
  async settled(): Promise<void> {
    const bound = CONNECT_TIMEOUT_MS + this.#timeoutMs;
    await withTimeout(this.#settled, bound).catch((overdue: unknown) => this.#report(overdue));
    if (this.#refusal) throw this.#refusal;
  }

  /** @returns the slot of a key. A script may only use keys of one slot. */
  slotOf(key: string): number {
    return this.#topology.slotOf(key);
  }

  /**
   * Runs a command where a key is; once more if the key has moved to another server.
   *
   * @param command - gets the session: a number that is another one before a reply can come from another server, or over
   *   another connection, where older data may be. An error that it throws, such as for a reply of another form, counts
   *   as a failure of Redis
   * @throws RedisUnavailable when Redis is lost, fails or takes too long; the command may still take effect
   */
  async run<T>(key: string, command: (client: Redis, session: number) => Promise<T>): Promise<T> {
    const slot = this.slotOf(key);
    for (let isRepeated = false; ; isRepeated = true) {
      const server = this.#topology.serverOf(slot);
      const session = this.#topology.sessionOf(slot);
      if (server.state !== 'up') throw new RedisUnavailable('Redis is lost');
      try {
        const reply = await withTimeout(command(server.client, session), this.#timeoutMs);
        if (session !== this.#topology.sessionOf(slot)) throw new Error('the reply is of an earlier session');
        return reply;
      } catch (error) {
        const isRedirected = REDIRECTION.test(String(error));
        if (!isRedirected && session === this.#topology.sessionOf(slot)) server.lose(error);
        if (!isRedirected || isRepeated) throw new RedisUnavailable('Redis failed', { cause: error });
      }
      await withTimeout(this.#topology.refresh(), this.#timeoutMs).catch(() => undefined);
    }
  }

  close(): void {
    void this.#tending.stop();
    // This end of the connection is no loss.
    this.#onChange = () => undefined;
    this.#topology.close();
  }

  /** @param overdue - set when a server that has neither answered nor failed counts as lost */
  #report(overdue?: unknown): void {
    const { shards } = this;
    // A successor has a moment to connect.
    if (overdue === undefined && shards.some(({ state }) => state === 'connecting')) return;
    const lost = shards.filter(({ state }) => state !== 'up');
    const names = lost.map(({ name }) => name);
    const reason = lost[0]?.reason ?? overdue;
    this.#refusal = this.#topology.refusalOf(reason);
    const before = this.#reported ?? '';
    this.#reported = names.join();
    this.#settle();
    if (this.#reported === before) return;
    this.#onChange(lost.length > 0 ? 'lost' : 'up', this.#refusal ?? reason, names.length < shards.length ? names : []);
  }
}
