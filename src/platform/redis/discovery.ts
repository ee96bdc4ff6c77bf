import { Redis, type RedisOptions } from 'ioredis';
import type {
  RedisClusterAddress,
  RedisCredentials,
  RedisNode,
  RedisSentinelAddress,
} from '../../config/redis-address.js';
import { withTimeout } from '../async/with-timeout.js';

/** Bound on asking one node, connection and all, in milliseconds. */
const ASK_TIMEOUT_MS = 1_000;

/** How long a server may take to close its side of a connection, in milliseconds. */
export const DISCONNECT_TIMEOUT_MS = 100;

/** How often the link connects again to a Sentinel that cannot be reached, in milliseconds. */
const SENTINEL_RETRY_INTERVAL_MS = 5_000;

/** The form of a Sentinel's announcement: `<name> <old host> <old port> <new host> <new port>`. */
const SWITCH_CHANNEL = '+switch-master';

/** Options of a connection, without those that change the types of replies. */
export type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

/** For all connections except the one for commands. */
const BESIDE = {
  connectTimeout: ASK_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  retryStrategy: () => null,
  maxRetriesPerRequest: 0,
  enableReadyCheck: false,
} as const satisfies RedisOptions;

/**
 * Asks all nodes at once for the server that takes writes. Takes a bounded time.
 *
 * @param key - one of our keys, by which a Cluster finds the slot
 * @throws Error with the answer of each node
 */
export async function findPrimary(
  address: RedisSentinelAddress | RedisClusterAddress,
  key: string,
): Promise<RedisNode> {
  try {
    return await Promise.any(
      address.nodes.map((node) =>
        address.kind === 'sentinel' ? askSentinel(address, node) : askCluster(address, node, key),
      ),
    );
  } catch (error) {
    const reasons = (error as AggregateError).errors.map((reason: Error, i) => {
      const { host = '', port = 0 } = address.nodes[i] ?? {};
      return `${host}:${port}: ${reason.message}`;
    });
    throw new Error(
      `no ${address.kind === 'sentinel' ? 'Sentinel' : 'cluster node'} leads on (${reasons.join('; ')})`,
      { cause: error },
    );
  }
}

function askSentinel(address: RedisSentinelAddress, node: RedisNode): Promise<RedisNode> {
  return ask(node, access(address.sentinelCredentials, address.tls), async (sentinel) => {
    const reply = (await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', address.masterName)) as
      | [host: string, port: string]
      | null;
    if (reply === null) throw new Error('it knows no master of that name');
    return { host: reply[0], port: Number(reply[1]) };
  });
}

type SlotRange = readonly [first: number, last: number, master?: readonly [host: string | null, port: number]];

function askCluster(address: RedisClusterAddress, node: RedisNode, key: string): Promise<RedisNode> {
  return ask(node, access(address.credentials, address.tls), async (client) => {
    const [slot, ranges] = await Promise.all([client.cluster('KEYSLOT', key), client.cluster('SLOTS')]);
    const [, , master] =
      (ranges as unknown as readonly SlotRange[]).find(([first, last]) => first <= slot && slot <= last) ?? [];
    if (master === undefined) throw new Error('it knows no node that holds our keys');
    const [host, port] = master;
    // An empty host means the node that was asked.
    return { host: host === null || host === '' ? node.host : host, port };
  });
}

/** Asks one node, on a connection for this question alone. */
async function ask<T>(
  node: RedisNode,
  options: ConnectionOptions,
  question: (client: Redis) => Promise<T>,
): Promise<T> {
  const client = new Redis({ ...node, ...options, ...BESIDE });
  let reason: unknown;
  client.on('error', (error: unknown) => (reason ??= error));
  try {
    return await withTimeout(question(client), ASK_TIMEOUT_MS);
  } catch (error) {
    throw reason ?? error;
  } finally {
    client.disconnect();
  }
}

/**
 * Listens for a Sentinel's announcement that another server has become the master, until it is disconnected.
 *
 * @param onSwitch - called with the old master
 */
export function listenToSentinel(
  address: RedisSentinelAddress,
  node: RedisNode,
  onSwitch: (host: string, port: number) => void,
): Redis {
  const client = new Redis({
    ...node,
    ...access(address.sentinelCredentials, address.tls),
    ...BESIDE,
    retryStrategy: () => SENTINEL_RETRY_INTERVAL_MS,
    autoResubscribe: false,
  });
  // A missing Sentinel is not reported: there are others, and without any the connection itself fails.
  client.on('error', () => undefined);
  client.on('ready', () => void client.subscribe(SWITCH_CHANNEL).catch(() => undefined));
  client.on('message', (_channel, message: string) => {
    const [name, host = '', port] = message.split(' ');
    if (name === address.masterName) onSwitch(host, Number(port));
  });
  return client;
}

/** @returns the options for the credentials and for the check of certificates */
export function access({ username, password }: RedisCredentials, tls: boolean): ConnectionOptions {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {} }),
  };
}
