import { once } from 'node:events';
import calculateSlot from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { OperatorError } from '../../errors.js';
import { shareWhilePending } from '../async/share-while-pending.js';
import { withTimeout } from '../async/with-timeout.js';
import { newSession, RedisServer } from './server.js';
import { readSlots, SLOTS, type SlotRange } from './slots.js';
import { clientOptions, CONNECT_TIMEOUT_MS, type NoServer, type Topology } from './topology.js';

/** The reply of a server outside any cluster. */
const NO_CLUSTER = /cluster support disabled|unknown command/i;

/**
 * The masters of a Redis Cluster, with a connection to each.
 *
 * ioredis has a client for clusters too. But it never queries the named nodes again while it has other addresses, and
 * skips nodes without an endpoint. An unexpected reply to CLUSTER SLOTS ends the process or fills its memory.
 */
export class ClusterTopology implements Topology {
  readonly #noServer: NoServer = {
    name: 'unassigned',
    state: 'connecting',
    reason: undefined,
    session: 0,
    tend: () => Promise.resolve(),
  };
  #owners = Array<RedisServer | NoServer>(SLOTS).fill(this.#noServer);
  /** For each slot the session that began when it came to its owner. */
  readonly #moved = new Uint32Array(SLOTS);
  /** The masters, by id and URL: at another address, a node needs another connection. */
  #servers = new Map<string, RedisServer>();
  /** The URLs of all nodes, when the slots were last read. */
  #nodes: readonly string[] = [];
  #isClosed = false;

  /**
   * Begins to connect.
   *
   * @param named - the URLs of nodes, of which one must be reachable
   */
  constructor(
    private readonly named: readonly string[],
    private readonly timeoutMs: number,
    private readonly onChange: () => void,
  ) {
    void this.refresh();
  }

  get shards(): readonly (RedisServer | NoServer)[] {
    const servers = [...this.#servers.values()];
    return this.#owners.includes(this.#noServer) ? [...servers, this.#noServer] : servers;
  }

  slotOf(key: string): number {
    return calculateSlot(key);
  }

  serverOf(slot: number): RedisServer | NoServer {
    return this.#owners[slot] ?? this.#noServer;
  }

  sessionOf(slot: number): number {
    return Math.max(this.serverOf(slot).session, this.#moved[slot] ?? 0);
  }

  refusalOf(reason: unknown): OperatorError | undefined {
    if (!NO_CLUSTER.test(String(reason))) return undefined;
    return new OperatorError('The Redis named by REDIS_URL is no Redis Cluster.', {
      advice: 'Set REDIS_URL to redis://host:port, or rediss for TLS.',
      cause: reason,
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const { client } of this.#servers.values()) client.disconnect();
  }

  /** Reads the slots from a master in use; if none answers, from a named node or one of the last known. */
  readonly refresh = shareWhilePending(async () => {
    for (const { client, state } of fromRandom([...this.#servers.values()])) {
      if (state === 'up' && (await this.#read(client)) === undefined) return;
    }
    const failures: unknown[] = [];
    for (const url of fromRandom([...this.named, ...this.#nodes])) {
      if (this.#isClosed) return;
      const client = this.#connect(url).on('error', () => undefined);
      failures.push(await this.#read(client, withTimeout(once(client, 'ready'), CONNECT_TIMEOUT_MS)));
      client.disconnect();
      if (failures.at(-1) === undefined) return;
    }
    this.#noServer.state = 'lost';
    this.#noServer.reason = failures.find((failure) => this.refusalOf(failure)) ?? failures[0];
    this.onChange();
  });

  #connect(url: string): Redis {
    return new Redis(url, clientOptions(this.timeoutMs));
  }

  /** Reads the slots from a node. @returns the error, if that fails */
  async #read(client: Redis, ready?: Promise<unknown>): Promise<unknown> {
    try {
      await ready;
      const ranges = await readSlots(client, this.timeoutMs);
      if (!this.#isClosed) this.#assign(ranges);
      return undefined;
    } catch (error) {
      return error;
    }
  }

  #assign(ranges: readonly SlotRange[]): void {
    const servers = new Map<string, RedisServer>();
    const owners = Array<RedisServer | NoServer>(SLOTS).fill(this.#noServer);
    for (const { first, last, nodes } of ranges) {
      const [{ id, host, port }] = nodes;
      const url = this.#urlOf(host, port);
      const server = servers.get(id + url) ?? this.#servers.get(id + url) ?? this.#open(id, url);
      servers.set(id + url, server);
      owners.fill(server, first, last + 1);
    }
    const session = newSession();
    for (let slot = 0; slot < SLOTS; slot += 1) if (owners[slot] !== this.#owners[slot]) this.#moved[slot] = session;
    for (const [key, { client }] of this.#servers) if (!servers.has(key)) client.disconnect();
    this.#nodes = ranges.flatMap(({ nodes }) => nodes.map(({ host, port }) => this.#urlOf(host, port)));
    this.#owners = owners;
    this.#servers = servers;
    this.#noServer.state = 'lost';
    this.#noServer.reason = new Error('no node has these slots');
    this.onChange();
  }

  /** @returns a URL with the user, the password and the use of TLS of the named nodes */
  #urlOf(host: string, port: number): string {
    const url = new URL(this.named[0] ?? '');
    url.host = `${host.includes(':') ? `[${host}]` : host}:${port}`;
    return url.href;
  }

  #open(id: string, url: string): RedisServer {
    const probeKey = (i: number): string => `catalog:probe:${i}`;
    const probeKeys = (): string[] => {
      let i = 0;
      while (i < 10 * SLOTS && this.serverOf(this.slotOf(probeKey(i))) !== server) i += 1;
      return [probeKey(i)];
    };
    const server = new RedisServer(id, this.#connect(url), probeKeys, this.timeoutMs, this.onChange);
    return server;
  }
}

/** Begins a list anywhere: a node that is cut off from the others has outdated slots, and must not always be the first. */
function fromRandom<T>(list: readonly T[]): readonly T[] {
  const start = Math.floor(Math.random() * list.length);
  return [...list.slice(start), ...list.slice(0, start)];
}
