import type { RedisOptions } from 'ioredis';
import type { OperatorError } from '../../errors.js';
import { backoff } from '../async/backoff.js';
import type { RedisServer } from './server.js';

/** Where Redis is. */
export interface RedisAddress {
  /** `redis://` or `rediss://`. May contain a password and is never printed. */
  readonly url: string;
  /** The URLs of nodes of a cluster, of which one must be reachable. Omit it for a single Redis. */
  readonly cluster?: readonly string[] | undefined;
  /** The Sentinels that name the master, if any. The host of the URL is then the master's name. */
  readonly sentinels?: readonly { readonly host: string; readonly port: number }[] | undefined;
  /** The password of the Sentinels themselves, if they have one. */
  readonly sentinelPassword?: string | undefined;
}

/** Takes the place of the server for slots without an owner, or whose owner is not known yet. */
export interface NoServer extends Omit<RedisServer, 'client' | 'lose' | 'state'> {
  state: Exclude<RedisServer['state'], 'up'>;
}

/** Which server has each key: the only one, the master that Sentinels name, or a node of a cluster. */
export interface Topology {
  /** Each has all keys, or a part of them. */
  readonly shards: readonly (RedisServer | NoServer)[];
  slotOf(key: string): number;
  serverOf(slot: number): RedisServer | NoServer;
  /** Ends before a reply can come from another server, or over another connection. */
  sessionOf(slot: number): number;
  /** Finds out again where the slots are. Never rejects. */
  refresh(): Promise<void>;
  /** @returns why a Redis that fails for this reason cannot be used at all; undefined for any other reason */
  refusalOf(reason: unknown): OperatorError | undefined;
  close(): void;
}

/** The least bound on a connection, also to a Sentinel, in milliseconds. */
export const CONNECT_TIMEOUT_MS = 1_000;

/** The waits between attempts to use a lost Redis. */
export const RETRY = { firstMs: 100, longestMs: 500 } as const;

/**
 * By default ioredis queues commands while it is disconnected and sends failed ones again, so a dead or frozen Redis
 * would hang a request for ever. With these options commands fail at once and are sent only once.
 *
 * @param timeoutMs - bound on one command, in milliseconds
 */
export function clientOptions(timeoutMs: number) {
  return {
    connectTimeout: Math.max(CONNECT_TIMEOUT_MS, timeoutMs),
    // How long a connection may be silent after a command until it is replaced.
    socketTimeout: 2 * Math.max(CONNECT_TIMEOUT_MS, timeoutMs),
    // How long a server may take to close its side of a connection.
    disconnectTimeout: 100,
    retryStrategy: (failures) => backoff(failures, RETRY),
    // The address may lead to the new master by now.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectionName: 'catalog',
    // It needs INFO, which some Redis do not have. The probe finds a Redis that still loads its data.
    enableReadyCheck: false,
  } satisfies RedisOptions;
}
